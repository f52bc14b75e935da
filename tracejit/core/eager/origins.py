"""Views whose origin forbids some uses: those made in no_grad or inference mode, and the pieces
that `split` and its kin give.

In: such a view that is written, or used after its memory was written. Out: PyTorch's error, or how
the view stands. Called by the tape, by writes, and where a tensor's history is put on the tape.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.nodes import grad_fn_of
from tracejit.core.eager.recording import active
from tracejit.core.eager.saved import version_of
from tracejit.core.eager.state import TensorState
from tracejit.core.eager.views import View, canonical, chain_of
from tracejit.core.ops.types import FLOATING

# How a view stands: 0 (like any other), or one of these.
CUT = 1  # its base requires grad, but no gradient flows from the view to it
LOST = 2  # its memory was written since, and it has no history of that: any use raises

NO_GRAD, INFERENCE, PIECE = "no_grad", "inference_mode", "piece"  # values of `View.origin`
_MODES = {NO_GRAD: ("no_grad mode", "with grad mode enabled"),
          INFERENCE: ("inference mode", "in normal mode"),
          PIECE: ("no_grad mode", "with grad mode enabled")}
_ONE_OF_SEVERAL = (
    " This view is the output of a function that returns multiple views. Such functions do not "
    "allow the output views to be modified inplace. You should replace the inplace operation by "
    "an out-of-place one."
)


def origin_of(parent: TensorState) -> str | None:
    """Return the origin of a view of `parent` that is made now."""
    if not active.grad_enabled:
        return INFERENCE if active.inference else NO_GRAD
    view = canonical(parent)._view
    return view.origin if type(view) is View else None


def mark(x: TensorState, origin: str | None) -> None:
    """Record the origin of a view, and the version of its memory now."""
    x._view.origin, x._view.version = origin, version_of(x)


def piece(x: TensorState, name: str, number: int) -> None:
    """Record that x is result `number` of a function of several views; `name`: its node in
    PyTorch."""
    if type(x._view) is View:
        x._view.output = name, number
        mark(x, x._view.origin if x._view.origin in (NO_GRAD, INFERENCE) else PIECE)


def standing(x: TensorState) -> int:
    """Return how a view stands: 0 (no restriction), CUT or LOST."""
    x = canonical(x)
    view = x._view
    if type(view) is not View or x._dtype.category < FLOATING:
        return 0
    if view.origin is None and (view.generation == view.family.generation or not is_older(x)):
        return 0
    if grad_fn_of(x) is None and not chain_of(x)[0]._requires_grad:
        return 0
    if version_of(x) != view.version:
        return LOST
    return 0 if x._requires_grad else CUT


def is_older(x: TensorState) -> bool:
    """Return True if a view without history is older than its base's requires_grad and not written
    since.

    Until then no gradient flows from the view to the base.
    """
    view: Any = x._view
    return (view.generation >= 0 and not x._requires_grad and grad_fn_of(x) is None
            and version_of(x) == view.version)


def check_use(x: TensorState) -> None:
    """Raise RuntimeError if a tensor has lost the history that a use of it needs."""
    if type(x._view) is View and standing(x) == LOST:
        raise RuntimeError(_refusal(x, "its base or another view of its base has been"))


def check_write(x: TensorState) -> None:
    """Raise RuntimeError if the origin of a view forbids to record a write to it."""
    x = canonical(x)
    if type(x._view) is View and x._view.origin is not None:
        raise RuntimeError(_refusal(x, "is being"))


def _refusal(x: TensorState, what: str) -> str:
    x = canonical(x)
    view, node = x._view, grad_fn_of(x)
    mode, how = _MODES[view.origin]
    if node is None:
        text = f"A view was created in {mode} and {what} modified inplace {how}."
    else:
        name, number = view.output or (view.op.backward_name().removesuffix("Backward0"), 0)
        text = f"Output {number} of {name} is a view"
        if view.origin is PIECE:
            text += f" and {what} modified inplace."
        else:
            text += f" of a view which was created in {mode} and {what} modified inplace {how}."
    if view.origin is PIECE:
        return text + _ONE_OF_SEVERAL
    return text + (
        " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify "
        f"your code by moving both the view and the inplace either both inside the {view.origin} "
        "block (if you don't want the inplace to be tracked) or both outside (if you want the "
        "inplace to be tracked)."
    )
