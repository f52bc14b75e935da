"""Waits of programs for other processes, when native code has looked long enough.

In: the place of what was begun. Out: nothing, or the error of a process that died or did not come.
Called by `executable`; `distributed` installs the functions that know of processes.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tracejit.core.eager.interrupts import HeldInterrupts

Wait = Callable[[int, Callable[[], None]], None]
_wait: list[Wait] = []
_abandon: list[Callable[[Sequence[int]], None]] = []
_kept: list[Any] = []


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.failed: list[CollectiveFailed] = []  # of programs whose plain functions run now


_own = _OfThread()


def install(wait: Wait, abandon: Callable[[Sequence[int]], None]) -> None:
    """Set the functions that wait, and that give up: `wait(place, look)`, which calls `look()` now
    and then, and `abandon(places)`."""
    _wait[:], _abandon[:] = [wait], [abandon]


def may_happen() -> bool:
    """Return True if this process works together with others."""
    return bool(_wait)


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
    _own.failed.append(error)
    try:
        yield
    finally:
        _own.failed.pop()


def raise_repeated() -> None:
    """Raise the error of a program whose plain function runs now."""
    if _own.failed:
        raise RuntimeError(str(_own.failed[-1])) from None


def _look() -> None:
    """Raise if a signal is held back: its handler then runs when the error has left the program."""
    held = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    if isinstance(held, HeldInterrupts) and held.arrived:
        raise RuntimeError("a signal came while the program waited for other processes")


def give_up(places: Sequence[int], *memory: Any) -> None:
    """Leave collectives that a program began and does not wait for.

    places  what was begun; its memory is kept for ever, for MPI may still read and write it
    """
    if places:
        _kept.append(memory)
        _abandon[0](places)
