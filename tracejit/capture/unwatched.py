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


def unwatched(function: Callable[..., Any], *arguments: Any) -> Any:
    """`function(*arguments)`, while no watcher listens."""
    watching: Any = sys.getprofile()
    if getattr(watching, "__func__", None) not in WATCHING:
        return function(*arguments)
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
