"""Room on the stack: rewritten code and the tracer need more frames than the plain function.

In: a recording about to run the user's code. Out: Python's recursion limit is higher meanwhile, in
all threads, so that a function that recurses deep enough to work plainly works recorded. A
recursion that a value ends would never end on trial, where every side is recorded: `Blocks` refuses
it. Called by the recording of a call, and by branches and loops.
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
FRAMES = 6  # of ours for each of the user's, at most
_lock = forks.rlock()
_limits: list[int] = []  # the limit that was set, once for each recording that runs
_get = sys.getrecursionlimit


class _Mine(threading.local):
    recordings = 0  # that run in this thread


_mine = _Mine()


@contextmanager
def deeper() -> Iterator[None]:
    """Multiply the recursion limit while anybody records.

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
    """Return the limit that the user's program has set, maybe while it was recorded."""
    now = _get()
    if _limits and now != _limits[-1] * FRAMES:
        _limits[:] = [now] * len(_limits)
    return _limits[-1] if _limits else now


def told() -> None:
    """Python is about to tell the limit: it is the user's, until `forgotten`."""
    with suppress(RecursionError):  # the stack is deeper than that by now
        sys.setrecursionlimit(user_limit())


def forgotten() -> None:
    """Put the limit of recordings back: the user's was told, or set."""
    user_limit()
    if _limits:
        sys.setrecursionlimit(_limits[-1] * FRAMES)


@forks.in_child
def _forget_other_threads() -> None:
    """Forget recordings that never end in a forked child: the limit counts this thread's alone."""
    limit = user_limit()
    recording = bool(_limits)
    _limits[:] = [limit] * _mine.recordings
    if recording:
        sys.setrecursionlimit(limit * FRAMES if _limits else limit)


class Blocks:
    """User's blocks that are on trial, one within the other."""

    def __init__(self) -> None:
        self._open: list[tuple[CodeType, int]] = []  # which instructions of the user's they are
        self._nested: dict[tuple[CodeType, int], int] = {}  # how often each began within itself
        self._endless: set[tuple[CodeType, int]] = set()

    @contextmanager
    def speculating(self) -> Iterator[None]:
        """Around the trial of the block that the user's innermost frame is about to run.
        RegionRefused where it begins within itself time and again, and from then on."""
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
