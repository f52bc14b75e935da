"""Room on the stack: rewritten code and the tracer need more frames than the plain function.

In: a recording about to run the user's code. Out: a higher recursion limit meanwhile, in all
threads. A function whose recursion just fits plainly then fits recorded too. `Blocks` refuses a
recursion that a value ends: on trial, which records every side, it would never end. Called by the
session, branches and loops.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import CodeType

from tracejit.core.memory import forks
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.location import user_frame

MOST = 32  # trials of one block within its own trial
FRAMES = 6  # of tracejit's for each of the user's, at most
_lock = forks.rlock()
_limits: list[int] = []  # the user's limit, once for each recording that runs
_get = sys.getrecursionlimit


class _Mine(threading.local):
    recordings = 0  # that run in this thread


_mine = _Mine()


@contextmanager
def deeper() -> Iterator[None]:
    """Multiply the recursion limit while any thread records.

    >>> import sys
    >>> before = sys.getrecursionlimit()
    >>> with deeper():
    ...     sys.getrecursionlimit() > before, user_limit() == before
    (True, True)
    >>> sys.getrecursionlimit() == before
    True
    """
    with _lock:
        _limits.append(user_limit())
        _mine.recordings += 1
        sys.setrecursionlimit(_limits[-1] * FRAMES)
    try:
        yield
    finally:
        with _lock:
            limit = user_limit()
            _limits.pop()
            _mine.recordings -= 1
            sys.setrecursionlimit(limit * FRAMES if _limits else limit)


def user_limit(_: None = None) -> int:
    """Return the limit that the user's program has set, perhaps during a recording."""
    now = _get()
    if _limits and now != _limits[-1] * FRAMES:
        _limits[:] = [now] * len(_limits)
    return _limits[-1] if _limits else now


def told() -> None:
    """Put the user's limit in place: Python is about to tell it. `forgotten` undoes that."""
    with suppress(RecursionError):  # the stack is deeper than that by now
        sys.setrecursionlimit(user_limit())


def forgotten() -> None:
    """Put the limit of recordings back after Python told the user's, or set it."""
    user_limit()
    if _limits:
        sys.setrecursionlimit(_limits[-1] * FRAMES)


@forks.in_child
def _forget_other_threads() -> None:
    """Forget recordings of other threads in a forked child, where they never end."""
    limit = user_limit()
    recording = bool(_limits)
    _limits[:] = [limit] * _mine.recordings
    if recording:
        sys.setrecursionlimit(limit * FRAMES if _limits else limit)


class Blocks:
    """Blocks of the user's code that are on trial, one inside the other."""

    def __init__(self) -> None:
        self._open: list[tuple[CodeType, int]] = []  # code and instruction at which each begins
        self._nested: dict[tuple[CodeType, int], int] = {}  # times that each began within itself
        self._endless: set[tuple[CodeType, int]] = set()

    @contextmanager
    def speculating(self) -> Iterator[None]:
        """Surround the trial of the block that the user's innermost frame is about to run.

        Raise RegionRefused if the block began within itself more than MOST times, and at each later
        trial of it.
        """
        frame = user_frame(3)
        assert frame is not None, "a block belongs to the user's code"
        place = frame.f_code, frame.f_lasti
        if place in self._open:
            self._nested[place] = self._nested.get(place, 0) + 1
            if self._nested[place] > MOST:
                self._endless.add(place)
        if place in self._endless:
            raise RegionRefused("it runs itself again, by recursion")
        self._open.append(place)
        try:
            yield
        finally:
            self._open.pop()
            if place not in self._open:
                self._nested.pop(place, None)
