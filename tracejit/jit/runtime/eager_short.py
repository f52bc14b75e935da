"""A short way to the programs of small fused ops of eager mode.

In: the tensors of a public function's call, and its other arguments. Out: the result of the program
that `eager_fused` has for them, or NotImplemented where the general way has to run: it checks
arguments, and makes the program. Called by these functions once they were called a few times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.config import flags
from tracejit.core.eager import dispatch
from tracejit.core.eager.recording import active
from tracejit.core.eager.state import is_ordinary
from tracejit.core.eager.views import View
from tracejit.core.memory import CPU
from tracejit.core.ops.direct_calls import Direct, parameters
from tracejit.core.ops.record import REGISTRY, Op
from tracejit.jit.runtime import eager_fused
from tracejit.jit.runtime.executable import ProgramError

_KEPT = 4096  # kinds of calls of one function
_NUMBERS = (int, float)
_PLAIN = (*_NUMBERS, str)


def _along(shape: tuple, dim: Any) -> dict | None:
    if type(dim) is not int or not -len(shape) <= dim < len(shape):
        return None
    return {"dim": dim % len(shape)}


def _last(shape: tuple, wanted: Any, eps: Any) -> dict | None:
    if type(wanted) is not tuple or not wanted or shape[-len(wanted):] != wanted:
        return None
    if type(eps) not in _NUMBERS:
        return None
    return {"dims": tuple(range(len(shape) - len(wanted), len(shape))), "eps": float(eps)}


def _classes(shape: tuple, ignored: Any, reduction: Any, smoothing: Any) -> dict | None:
    if type(ignored) is not int or type(reduction) is not str or type(smoothing) not in _NUMBERS:
        return None
    return {"ignore_index": ignored, "reduction": reduction, "label_smoothing": float(smoothing)}


# function -> (shape of the first tensor, other arguments) -> attributes of the record, or None
_ATTRIBUTES: dict[str, Callable[..., dict | None]] = {
    "sigmoid": lambda shape: {}, "softmax": _along, "log_softmax": _along, "layer_norm": _last,
    "cross_entropy": _classes,
}  # fmt: skip


def direct(function: Direct | Op) -> Callable[..., Any]:
    """Make the function of (tensors, *others); that of an op takes one tensor."""
    op, attributes_of = REGISTRY[function.name], _ATTRIBUTES[function.name]
    known: dict[tuple, tuple] = {}

    def run(tensors: tuple, *others: Any) -> Any:
        if (active.tracer is not None or active.inference or active.level is not None
                or flags.check_nans or dispatch.is_replaced()):
            return NotImplemented
        recorded = active.grad_enabled
        key: tuple = others
        for x in tensors:
            if x is None:
                key += (None,)
            elif is_plain(x, recorded):
                key += (x._dtype, x._shape)
            else:
                return NotImplemented
        for x in others:
            if type(x) not in _PLAIN and not _sizes(x):
                return NotImplemented
            key += (type(x),)
        found = known.get(key)
        if found is None:
            found = learnt(tensors, others)
            if found is None:
                return NotImplemented
            if len(known) >= _KEPT:
                known.clear()
            known[key] = found
        launch, plan, places = found
        try:
            given = tensors[:1] if places == (0,) else tuple([tensors[k] for k in places])
            return launch(given, plan)[0]
        except (ProgramError, MemoryError):  # the general way says what is wrong
            return NotImplemented

    def learnt(tensors: tuple, others: tuple) -> tuple | None:
        attributes = attributes_of(tensors[0]._shape, *others)
        call = None if attributes is None else eager_fused.known_call(op, tensors, attributes)
        if call is None or call.bound.direct is None:
            return None
        return *call.bound.direct, call.tensors

    return run if type(function) is Direct else lambda x, *others: (
        NotImplemented if others else run((x,)))


def is_plain(x: Any, recorded: bool) -> bool:
    """Return True for a contiguous tensor on the CPU that nothing is recorded of."""
    if not is_ordinary(x) and type(x) not in parameters:
        return False
    if x._strides is not None or x._storage is None or x._device is not CPU:
        return False
    view = x._view
    if not recorded:
        return True
    stale = type(view) is View and (view.op is None or view.generation != view.family.generation)
    return not (x._requires_grad or stale)


def _sizes(x: Any) -> bool:
    return type(x) is tuple and all(type(size) is int for size in x)
