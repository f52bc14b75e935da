"""Work of tracejit's own during a recording, which nobody needs to watch.

In: a function that runs no code of the user's. Out: what it gives, without a profile event for each
of its thousands of calls. Called where ops are recorded, segments end and source is rewritten.
Watchers give back here to who listened before them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

WATCHING: set[Any] = set()  # the profile functions that may be put aside


def is_watched_now() -> bool:
    """Whether a watcher listens in this thread."""
    return getattr(sys.getprofile(), "__func__", None) in WATCHING


def unwatched(function: Callable[..., Any], *arguments: Any) -> Any:
    """`function(*arguments)`, while no watcher listens."""
    if not is_watched_now():
        return function(*arguments)
    watching: Any = sys.getprofile()
    sys.setprofile(None)
    try:
        return function(*arguments)
    finally:
        sys.setprofile(watching)


def give_back(before: Any) -> None:
    """What `sys.getprofile()` gave listens again."""
    if before is None or callable(before):
        sys.setprofile(before)
        return
    sys.setprofile(None)
    if hasattr(before, "enable"):  # cProfile's, which is no function
        before.enable()
