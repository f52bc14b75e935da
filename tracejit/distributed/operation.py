"""An operation: one call of MPI that was posted, and what it needs to live until it is over.

In: the communicator that carries it on. Out: results in their places, or an error. Made by
`communicator`; waited for by `work` and by those who post.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tracejit.core.memory import forks
from tracejit.distributed.ring import DONE

if TYPE_CHECKING:
    from tracejit.distributed.communicator import Communicator

# Tests between two looks of Python at deadlines and at dead processes: about a millisecond. Where
# each test gives the core away, other work may keep it for milliseconds.
BUDGET, BUDGET_CROWDED = 4000, 100
_HEARS = 0.5  # seconds in which the watch tells of a death that MPI has noticed


def _no_look() -> None:
    pass


class Operation:
    """One call of MPI that was posted, and what it needs to live until it is over.

    name      of the collective, for errors
    keep      objects whose memory MPI reads or writes
    finish    called once, by the first who finds the operation done: copies results to their places
    look      called now and then while somebody waits; it may raise
    count     elements of a collective, for errors; -1 if they are not known
    """

    __slots__ = (
        "_ring", "name", "number", "_place", "keep", "finish", "_ended", "error", "status", "_lock",
        "look", "count",
    )  # fmt: skip

    def __init__(self, ring: Communicator, name: str, keep: Any,
                 finish: Callable[[], None] | None):  # fmt: skip
        self._ring, self.name, self.keep, self.finish = ring, name, keep, finish
        self.number, self._place, self.count = -1, 0, -1
        self._ended, self.error = False, None
        self.look: Callable[[], None] = _no_look
        self.status: bytes | None = None  # MPI's status of a message, once it is over
        self._lock = forks.rlock()

    def done(self) -> bool:
        """Return True if MPI is through with it; asks MPI once."""
        if self._ended:
            return True
        self._ring.check()
        if self._ring.drive(self._place, 1) >= DONE:
            self.end()
        return self._ended

    def wait(self, timeout: float | None) -> None:
        """Wait until it is over. RuntimeError if it fails, if a process of the job dies, or after
        `timeout` seconds."""
        ring = self._ring
        ring.check()
        if not self._ended and ring.drive(self._place, ring.budget) < DONE:
            self._wait_long(timeout, self.look)
        self.end()
        if self.error is not None:
            raise self.error

    def _wait_long(self, timeout: float | None, look: Callable[[], None]) -> None:
        ring = self._ring
        watch = ring.watch
        begun, tests = time.monotonic(), 0
        if watch is not None:
            watch.enter(self.number, self.name, self.sizes(self.count, self.keep))
        try:
            while ring.drive(self._place, ring.budget) < DONE:
                look()
                if watch is not None and watch.failed is not None:
                    raise RuntimeError(f"{self.name} cannot end: {watch.failed}")
                waited = time.monotonic() - begun
                if timeout is not None and waited > timeout:
                    raise RuntimeError(ring.timeout_text(self.name, self.number, timeout))
                tests += ring.budget
                if waited > 0.02 and tests >= BUDGET:  # nothing is near: leave the core to others
                    time.sleep(0.0001)
                    tests = 0
        except BaseException:
            ring.wake()  # the thread takes what nobody drives any more
            raise
        finally:
            if watch is not None:
                watch.leave()

    @staticmethod
    def sizes(count: int, keep: Any) -> str:
        """Return how much a collective moves, such as "5 float32"; "" if that is unknown."""
        kept = keep if isinstance(keep, tuple) else (keep,)
        kind = next((one.dtype for one in kept if hasattr(one, "dtype")), None)
        return "" if count < 0 or kind is None else f"{count} {kind.name}"

    def end(self) -> None:
        """Take note of the result, and copy it to its place, once."""
        with self._lock:
            if self._ended:
                return
            code, self.status = self._ring.ending(self._place)
            self._ended = True
            finish, self.finish, self.keep = self.finish, None, None
            if code:
                text, watch = self._ring.error_text(code), self._ring.watch
                if watch is not None and watch.hears_of_failure(_HEARS):
                    text = f"{self.name} cannot end: {watch.failed} (MPI: {text})"
                else:
                    text = f"{self.name}: MPI: {text}"
                self.error = RuntimeError(text)
            elif finish is not None:
                finish()
