"""What programs ask of the compiler; PyTorch's `torch.compiler`.

In: functions to be marked, and questions. Out: the same functions, and answers that hold for plain
and compiled calls alike, since a compiled call shows what the plain one does.
"""

from __future__ import annotations

from typing import Any

from tracejit.jit import compile

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
    "is_compiling", "is_dynamo_compiling", "is_exporting", "reset",
]  # fmt: skip


def is_compiling() -> bool:
    """Whether to take a path that only compiled code has: never, both run the same."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Marks nothing: what cannot be captured is found without marks; as `@disable` or `@disable()`.

    >>> @disable(reason="it prints")
    ... def shown(x):
    ...     return x
    >>> shown(1)
    1
    """
    return fn if fn is not None else lambda function: function


def allow_in_graph(fn: Any) -> Any:
    """Marks nothing."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Marks nothing: what a function gives is never taken for what it gave before."""
    return fn


def reset() -> None:
    """Nothing to forget: programs are freed with the functions they belong to."""


def cudagraph_mark_step_begin() -> None:
    """Nothing to mark: results of one call are not overwritten by the next."""
