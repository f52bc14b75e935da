"""Python's garbage collector during a recording: no watcher and no tracer sees what it runs.

In: the recording's thread. Out: `Unseen`, a context around the recorded call. The collector runs
finalizers and callbacks of weak references at any moment, of objects that the call may never have
touched. They are no part of the call: a replay leaves them to the collections of its own time.
"""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

from tracejit.core.eager.recording import active
from tracejit.jit.capture.unwatched import is_watched_now


class Unseen:
    """Context whose thread records nothing while the garbage collector runs in it by itself.

    asked  the recorded code called `gc.collect`: what that runs is part of the call
    """

    asked = False

    def __enter__(self) -> None:
        self.thread = threading.get_ident()
        self.watching: Any = None
        self.tracer: Any = None
        gc.callbacks.append(self._collects)

    def __exit__(self, *exc: object) -> None:
        if self._collects in gc.callbacks:
            gc.callbacks.remove(self._collects)

    def _collects(self, phase: str, _: dict) -> None:
        if threading.get_ident() != self.thread or self.asked:
            return
        if phase == "start":
            self.watching = sys.getprofile() if is_watched_now() else None
            self.tracer, active.tracer = active.tracer, None
            if self.watching is not None:
                sys.setprofile(None)
        else:
            active.tracer, self.tracer = self.tracer, None
            if self.watching is not None:
                sys.setprofile(self.watching)

