"""Test if the engine alone holds a gradient, by reference counts that are measured first.

In: a gradient that arrives at a leaf. Out: True if the leaf may take over its memory. Called by
`accumulation.accumulate`, through calls whose own references count, too. CPython's versions differ
in their number: `calibrate` measures it once, with gradients of no elements.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tracejit.core.eager.recording import active
from tracejit.core.eager.state import TensorState
from tracejit.core.eager.views import View
from tracejit.core.memory.reliances import holds, relies
from tracejit.core.memory.storage import Storage
from tracejit.core.ops.types import float32

_MOST = 8  # more references than any version of CPython counts


class _Expected:
    """Reference counts of a gradient that nobody else holds, of its base and of its storage; 0:
    never."""

    grad = parent = storage = 0


_sink: list[Callable[[Any, Any, list], None]] = []


def alone(grad: Any) -> bool:
    """Return True if only the engine holds this gradient and its memory."""
    if grad._storage is None or grad._requires_grad or grad._strides is not None:
        return False
    if sys.getrefcount(grad) > _Expected.grad:
        return False
    holders = _Expected.storage
    x = grad
    while type(x._view) is View:
        x = x._view.parent
        if sys.getrefcount(x) > _Expected.parent:
            return False
        holders += 1
    return sys.getrefcount(grad._storage) <= holders and grad._storage.nbytes == _nbytes(grad)


def _nbytes(x: Any) -> int:
    count = x._dtype.itemsize
    for size in x._shape:
        count *= size
    return count


class _Gradient(TensorState):
    """Gradient of no elements for the measurement. Its copy is None, which shows that it was not
    taken over."""

    __slots__ = ()

    def detach(self) -> Any:
        return self

    def clone(self) -> Any:
        return None


def _gradient(storage: Storage) -> Any:
    x = _Gradient.__new__(_Gradient)
    x._storage, x._shape, x._strides, x._dtype = storage, (0,), None, float32
    x._requires_grad, x._view = False, None
    return x


def _made(view: bool) -> Any:
    x = _gradient(Storage(None, 0, ptr=0))
    if view:
        parent, x = x, _gradient(x._storage)
        x._view = made = View.__new__(View)
        made.parent = parent
    return x


def _taken(view: bool = False, held: Callable[[Any], Any] | None = None) -> bool:
    """Return True if the engine takes over a gradient. `held`: gives the part of it that is held
    meanwhile."""
    variable = SimpleNamespace(_hooks=None, _requires_grad=True, _grad=None, _shape=(0,))
    node, grads = SimpleNamespace(variable=variable, extras=None), [_made(view)]
    kept = None if held is None else held(grads[0])
    _sink[0](SimpleNamespace(targets=None), node, grads)
    del kept
    return variable._grad is not None


def _counted(name: str, view: bool = False) -> None:
    """Set the smallest expected count with which the engine takes over a gradient that nobody else
    holds."""
    for count in range(_MOST + 1):
        setattr(_Expected, name, count)
        if _taken(view):
            return


@relies("references", "a gradient that nobody else holds has one count of references, always",
        "gradients that arrive at leaves are copied")
def _counts_references() -> bool:
    tracer, enabled = active.tracer, active.grad_enabled
    active.tracer, active.grad_enabled = None, False
    try:
        return _counts_say()
    finally:
        active.tracer, active.grad_enabled = tracer, enabled


def _counts_say() -> bool:
    """Measure the counts. Return True if they tell apart gradients of which somebody holds a
    part."""
    _Expected.grad = _Expected.parent = _Expected.storage = _MOST
    for name, view in (("grad", False), ("storage", False), ("parent", True)):
        _counted(name, view)
    parts = [(False, lambda x: x), (False, lambda x: x._storage), (True, lambda x: x._view.parent),
             (True, lambda x: x), (True, lambda x: x._storage)]
    return _taken() and _taken(True) and not any(_taken(view, held) for view, held in parts)


def calibrate(sink: Callable[[Any, Any, list], None]) -> None:
    """Measure the references to a gradient that arrives by `sink(task, node, grads)`."""
    _sink[:] = [sink]
    if not holds("references"):
        _Expected.grad = _Expected.parent = _Expected.storage = 0
