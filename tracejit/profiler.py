"""PyTorch's `torch.profiler`: ranges bear names, and nothing is recorded of them.

In: names for parts of a program. Out: those parts run as they are. Recording is refused: Python's
profilers see eager code, and `fn.report()` describes compiled code.
"""

from __future__ import annotations

import contextlib
import enum
from typing import Any, NoReturn


class ProfilerActivity(enum.Enum):
    """Kinds of work that PyTorch could record."""

    CPU = 0
    CUDA = 2


class ProfilerAction(enum.Enum):
    """Actions of a schedule for a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def kineto_available() -> bool:
    """Return False: nothing is recorded."""
    return False


class record_function(contextlib.ContextDecorator):
    """Name for a part of a program, as a context or a decorator.

    >>> with record_function("forward"):
    ...     1 + 1
    2
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


class profile:
    """Raise NotImplementedError: nothing is recorded. If disabled, a context that does nothing."""

    def __init__(self, *args: Any, enabled: bool = True, **kwargs: Any) -> None:
        if enabled:
            _refuse("profiler.profile")

    def __enter__(self) -> profile:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


def schedule(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: nothing is recorded."""
    _refuse("profiler.schedule")


def tensorboard_trace_handler(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: nothing is recorded."""
    _refuse("profiler.tensorboard_trace_handler")


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(f"{name}: nothing is recorded here; cProfile shows eager code, and "
                              "fn.report() what became of compiled code")
