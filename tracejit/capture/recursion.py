"""Room on the stack: rewritten code and the recorder need more frames than the plain function.

In: a recording about to run the user's code. Out: Python's recursion limit is higher meanwhile, in
all threads, so that a function that recurses deep enough to work plainly works recorded. Called by
the recording of a call.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

FRAMES = 6  # of ours for each of the user's, at most
_lock = threading.Lock()
_limits: list[int] = []  # the limit that was set, once for each recording that runs


@contextmanager
def deeper() -> Iterator[None]:
    """Multiply the recursion limit while anybody records.

    >>> import sys
    >>> before = sys.getrecursionlimit()
    >>> with deeper():
    ...     sys.getrecursionlimit() > before
    True
    >>> sys.getrecursionlimit() == before
    True
    """
    with _lock:
        _limits.append(_limits[0] if _limits else sys.getrecursionlimit())
        sys.setrecursionlimit(_limits[0] * FRAMES)
    try:
        yield
    finally:
        with _lock:
            limit = _limits.pop()
            if not _limits:
                sys.setrecursionlimit(limit)
