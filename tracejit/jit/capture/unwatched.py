"""Work of tracejit's own during a recording, which no watcher needs to see.

In: a function that runs no code of the user's. Out: its result, without a profile event for each of
its thousands of calls. Called where ops are recorded, segments end and source is rewritten. A
watcher gives the profile function before it back here.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

WATCHING: set[Any] = set()  # profile functions of watchers, which may be put aside


def is_watched_now() -> bool:
    """Return True if a watcher listens in this thread."""
    return getattr(sys.getprofile(), "__func__", None) in WATCHING


def unwatched(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return `function(*arguments)`; no watcher listens meanwhile."""
    if not is_watched_now():
        return function(*arguments)
    watching: Any = sys.getprofile()
    sys.setprofile(None)
    try:
        return function(*arguments)
    finally:
        sys.setprofile(watching)


class PutAside:
    """Profile function that does not listen until `back()`: the user's, or a watcher's around.

    A profiler may keep a stack of its own, as `profile` does. It saw the beginning of two calls: of
    the function that put it aside, and of `sys.setprofile`. So `back` tells it how they end.
    """

    def __init__(self) -> None:
        self.before: Any = sys.getprofile()
        self.ours = getattr(self.before, "__func__", None) in WATCHING
        told = callable(self.before) and not self.ours
        self.frame = sys._getframe(1) if told else None

    def back(self) -> None:
        """Let the profile function listen again. The function that ends the watch must make this
        call."""
        frame, self.frame = self.frame, None
        if frame is None:
            give_back(self.before)
            return
        sys.setprofile(None)
        here = sys._getframe()
        self.before(frame, "c_return", sys.setprofile)
        self.before(frame, "return", None)
        self.before(here.f_back, "call", None)
        self.before(here, "call", None)
        if _sees_its_beginning():
            self.before(here, "c_call", sys.setprofile)
        sys.setprofile(self.before)


class Unprofiled:
    """Context of a whole recording: the user's profile function listens before and after it only.

    Python closes generators without an event that they run, and `profile` then raises.
    """

    def __enter__(self) -> None:
        self.aside = PutAside()
        self.told = self.aside.frame is not None
        if self.told:
            sys.setprofile(None)

    def __exit__(self, *exc: object) -> None:
        if self.told:
            self.aside.back()


@functools.cache
def _sees_its_beginning() -> bool:
    """Return True if a profile function gets an event for the return of the `sys.setprofile` that
    sets it.

    Versions of Python differ. No profile function may be set meanwhile.
    """
    events: list[str] = []
    for _ in range(2):  # only the second time is the code instrumented
        events.clear()
        sys.setprofile(lambda frame, event, argument: events.append(event))
        sys.setprofile(None)
    return events[0] == "c_return"


def give_back(before: Any) -> None:
    """Set the profile function, or cProfile's profiler, that `sys.getprofile()` returned before."""
    if before is None or callable(before):
        sys.setprofile(before)
        return
    sys.setprofile(None)
    if hasattr(before, "enable"):  # cProfile's, which is no function
        before.enable()
