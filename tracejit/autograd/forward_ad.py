"""Forward mode: tensors with tangents, which go on to what is computed of them; PyTorch's
`torch.autograd.forward_ad`.

In: primals and tangents. Out: dual tensors, and the tangents of results. Functions that are
captured run op by op while a level is open; within one tangents are a part of its program.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any, NamedTuple

from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual",
           "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """Result of `unpack_dual`; `tangent` is None where a tensor has none."""

    primal: Any
    tangent: Any


def _level(number: int | None) -> Any:
    """Return the open level, or None. RuntimeError for another number than 0: there is one level at
    most."""
    level: Any = active.level
    if number not in (None, 0) and not (level is None and number == -1):
        raise RuntimeError("Invalid level given: forward mode has one level, 0")
    return level


def enter_dual_level() -> int:
    """Open the level; see `dual_level`. RuntimeError where it is open."""
    from tracejit.func.duals import Duals

    if active.level is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    active.level = Duals(active.tracer)
    # The level answers in the tracer's place, and hands on to it what it does not know.
    active.tracer = active.level
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level, and forget all tangents.

    RuntimeError where it is not open, or something opened after it, as a `vmap`, is not over.
    """
    held = active.level
    if held is None:
        raise RuntimeError("Trying to exit a forward AD level but no level exists")
    below = held.below
    if level not in (None, 0) or active.tracer is not held:
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was "
                           "created. This is not supported.")
    active.tracer, active.level = below, None


class dual_level(ContextDecorator):
    """Context in which tensors may have tangents. RuntimeError for one within another.

    >>> import tracejit
    >>> x, v = tracejit.tensor([1.0, 2.0]), tracejit.tensor([1.0, 0.0])
    >>> with dual_level():
    ...     y = make_dual(x, v) ** 3
    ...     unpack_dual(y).tangent
    tensor([3., 0.])
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Return a view of `tensor` with this tangent, which may be on the tape.

    RuntimeError where no level is open, for a tangent of another size, and for a tensor that has a
    tangent; ValueError for elements that are no floating point or complex numbers.
    """
    held = _level(level)
    if held is None:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, "
                           "make sure to enter_dual_level() first.")
    for name, x in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(x, Tensor):
            raise TypeError(f"make_dual: expected {name} to be a tensor, got {type(x).__name__}")
        if not (x.is_floating_point() or x.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: "
                             f"{x.dtype!r}")
    return held.dual(tensor, tangent)


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Return (the tensor without its tangent, the tangent). The tangent is None for a tensor that
    has none, or where no level is open."""
    held = _level(level)
    tangent = None if held is None else held.tangent(tensor)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(held.primal(tensor), tangent)
