"""Waits of programs for other processes, when native code has looked long enough.

In: the place of what was begun. Out: nothing, or the error of a process that died or did not come.
Called by `executable`; `distributed` installs the function that knows of processes.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tracejit.core.eager.interrupts import HeldInterrupts

_wait: list[Callable[[int, Callable[[], None]], None]] = []
_kept: list[Any] = []
_failed: list[CollectiveFailed] = []


def install(wait: Callable[[int, Callable[[], None]], None]) -> None:
    """Set the function that waits: `wait(place, look)`, which calls `look()` now and then."""
    _wait[:] = [wait]


class CollectiveFailed(RuntimeError):
    """Error of a captured program: other processes are gone, or did not come in time."""


def wait(place: int) -> None:
    """Wait for a collective. CollectiveFailed if other processes are gone, or if a signal came."""
    try:
        _wait[0](place, _look)
    except RuntimeError as error:
        raise CollectiveFailed(str(error)) from None


@contextmanager
def repeating(error: BaseException | None) -> Iterator[None]:
    """Let the plain function raise at its first collective what its program failed with.

    The other processes will not come a second time.
    """
    if not isinstance(error, CollectiveFailed):
        yield
        return
    _failed.append(error)
    try:
        yield
    finally:
        _failed.pop()


def raise_repeated() -> None:
    """Raise the error of a program whose plain function runs now."""
    if _failed:
        raise RuntimeError(str(_failed[-1])) from None


def _look() -> None:
    """Raise if a signal is held back: its handler then runs when the error has left the program."""
    held = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    if isinstance(held, HeldInterrupts) and held.arrived:
        raise RuntimeError("a signal came while the program waited for other processes")


def keep(*memory: Any) -> None:
    """Keep memory for ever that other processes may still read or write: a program gave up."""
    _kept.append(memory)
