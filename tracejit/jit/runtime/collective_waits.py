"""Waits of programs for other processes, when native code has looked long enough.

In: the place of what was begun. Out: nothing, or the error of a process that died or did not come.
Called by `executable`; `distributed` installs the function that knows of processes.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

from tracejit.core.eager.interrupts import HeldInterrupts

_wait: list[Callable[[int, Callable[[], None]], None]] = []
_kept: list[Any] = []


def install(wait: Callable[[int, Callable[[], None]], None]) -> None:
    """Set the function that waits: `wait(place, look)`, which calls `look()` now and then."""
    _wait[:] = [wait]


def wait(place: int) -> None:
    """Wait for a collective. RuntimeError if other processes are gone, or if a signal came."""
    _wait[0](place, _look)


def _look() -> None:
    """Raise if a signal is held back: its handler then runs when the error has left the program."""
    held = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    if isinstance(held, HeldInterrupts) and held.arrived:
        raise RuntimeError("a signal came while the program waited for other processes")


def keep(*memory: Any) -> None:
    """Keep memory for ever that other processes may still read or write: a program gave up."""
    _kept.append(memory)
