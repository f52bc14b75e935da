"""PyTorch's `torch.distributed.elastic.multiprocessing.errors`: `record`, with which scripts
decorate their main function.

In: a function. Out: the same function. An exception ends the process as it would without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["record"]

F = TypeVar("F", bound=Callable)


def record(fn: F, error_handler: object = None) -> F:
    """Return the function itself: the launcher reads a failed process's output."""
    return fn
