"""Room on the stack: rewritten code and the recorder need more frames than the plain function.

In: a recording about to run the user's code. Out: Python's recursion limit is higher meanwhile, in
all threads, so that a function that recurses deep enough to work plainly works recorded. Called by
the recording of a call.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

FRAMES = 6  # of ours for each of the user's, at most
_lock = threading.Lock()
_limits: list[int] = []  # the limit that was set, once for each recording that runs
_get = sys.getrecursionlimit


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
        sys.setrecursionlimit(_limits[-1] * FRAMES)
    try:
        yield
    finally:
        with _lock:
            limit = user_limit()
            _limits.pop()
            sys.setrecursionlimit(limit * FRAMES if _limits else limit)


def user_limit(_: None = None) -> int:
    """The limit that the user's program has set, maybe while it was recorded."""
    now = _get()
    if _limits and now != _limits[-1] * FRAMES:
        _limits[:] = [now] * len(_limits)
    return _limits[-1] if _limits else now


def told() -> None:
    """Python is about to tell the limit: it is the user's, until `forgotten`."""
    with suppress(RecursionError):  # the stack is deeper than that by now
        sys.setrecursionlimit(user_limit())


def forgotten() -> None:
    """The limit was told, or set."""
    user_limit()
    if _limits:
        sys.setrecursionlimit(_limits[-1] * FRAMES)
