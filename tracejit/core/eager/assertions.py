"""Assertions about a tensor's value that captured programs keep: PyTorch's `torch._assert`.

In: a tensor of one element, or any object with a truth value. Out: nothing, or the error. Called by
users, and by packages that check arguments and shall be compiled.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops import overriding
from tracejit.core.ops.control import ErrorOf, raise_if_record


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError with the message if the condition is false.

    >>> import tracejit
    >>> _assert(tracejit.ones(1) > 0, "positive")
    """
    if not isinstance(condition, Tensor) and overriding.carries(type(condition)):
        overriding.ask(_assert, [condition], (condition, message), None)
        return
    _hold(condition, AssertionError, message)


def _assert_async(input: Tensor, assert_msg: str = "Expected Tensor with single nonzero value, "
                  "but got zero") -> None:
    """Raise RuntimeError if the one element of a tensor is 0 or False."""
    _hold(input, RuntimeError, assert_msg)


def _hold(condition: Any, kind: type[Exception], message: Any) -> None:
    if (active.tracer is not None and type(message) is str and isinstance(condition, Tensor)
            and condition.numel() == 1):
        raise_if_record(condition.logical_not().reshape(()), error=ErrorOf(kind, (message,)))
    elif not condition:
        raise kind(message)
