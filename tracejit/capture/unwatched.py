"""Work of tracejit's own during a recording, which nobody needs to watch.

In: a function that runs no code of the user's. Out: what it gives, without a profile event for each
of its thousands of calls. Called where ops are recorded, segments end and source is rewritten.
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
