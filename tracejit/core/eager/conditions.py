"""Checks that programs state: PyTorch's `torch._check` and its kin.

In: a condition, and a function that gives the text. Out: an error if the condition is false.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.state import TensorState
from tracejit.core.ops.types import bool_


def _check_with(error_type: type, cond: Any, message: Any = None) -> None:
    """Raise `error_type` if the condition is False. `message`: function that returns the text.

    Raises TypeError if the condition is no bool, or `message` cannot be called.
    """
    if isinstance(cond, TensorState):
        raise TypeError("cond must be a bool, but got a Tensor. For tensor conditions, use "
                        "torch._check_tensor_all() to assert that all elements are true.")
    if not isinstance(cond, bool) and type(cond).__module__ in ("builtins", "numpy"):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    raise error_type("Expected cond to be True, but got False. (Could this error message be "
                     "improved? If so, please report an enhancement request to PyTorch.)"
                     if message is None else str(message()))


def _check(cond: Any, message: Any = None) -> None:
    """Raise RuntimeError if the condition is False."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Any = None) -> None:
    """Raise IndexError if the condition is False."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Any = None) -> None:
    """Raise ValueError if the condition is False."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Any = None) -> None:
    """Raise TypeError if the condition is False."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Any = None) -> None:
    """Raise NotImplementedError if the condition is False."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: Any, message: Any = None, *, max: Any = None) -> None:
    """Raise RuntimeError for a negative size, or one above `max`."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all(cond: Any, message: Any = None) -> None:
    """Raise RuntimeError if any element of a tensor of bools is False."""
    if not isinstance(cond, TensorState):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not bool_:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check(cond.all().item(), message)
