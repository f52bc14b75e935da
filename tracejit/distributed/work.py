"""Handles of collectives that go on while Python does something else; PyTorch's `Work`.

In: posted operations. Out: a handle to wait for them, and a future of their results. Called by
`collectives` and `point_to_point`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tracejit.core.eager.recording import active
from tracejit.distributed.operation import Operation
from tracejit.futures import Future


class Work:
    """Collective that was started with `async_op=True`.

    The tensors that it writes may be read after `wait()`; those that it reads may be written then.
    Programs get one from a collective, `isend`, `irecv` or `batch_isend_irecv`, and make none.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> x = tracejit.ones(2)
    >>> work = dist.all_reduce(x, async_op=True)
    >>> work.wait(), work.is_success(), work.result()
    (True, True, [tensor([1., 1.])])
    >>> dist.destroy_process_group()
    """

    def __init__(self, operations: Sequence[Operation], results: Sequence[Any],
                 timeout: float | None,
                 find_source: Callable[[bytes], int] | None = None):  # fmt: skip
        self._operations, self._results = operations, results
        self._timeout, self._find_source = timeout, find_source

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the results are there, at most `timeout` or the group's.

        Raises RuntimeError if that takes longer, or if a process of the job died.
        """
        self._break_recording()
        seconds = self._timeout if not timeout else timeout.total_seconds()
        for operation in self._operations:
            operation.wait(seconds)
        return True

    def _break_recording(self) -> None:
        """End a recording's segment: a replay would not wait for what was started elsewhere."""
        if self._operations and active.tracer is not None:
            active.tracer.break_graph(
                None, "the function waits for a collective that no op of its graph is",
                "start it in the captured function, or wait for it before")

    def is_completed(self) -> bool:
        """Return True if the results are there, or an error."""
        self._break_recording()
        over = [operation.done() for operation in self._operations]  # asks each
        return all(over)

    def is_success(self) -> bool:
        """Return True if it ended without an error."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        """Return the error that it ended with, or None."""
        return next((o.error for o in self._operations if o.error is not None), None)

    def result(self) -> list:
        """Return the tensors that it writes, after a wait."""
        self.wait()
        return list(self._results)

    def source_rank(self) -> int:
        """Return the rank, in the group, that a received tensor came from; -1 if it was sent."""
        status = self._operations[0].status if self._operations else None
        return -1 if status is None or self._find_source is None else self._find_source(status)

    def synchronize(self) -> None:
        """Wait, as `wait` does."""
        self.wait()

    def block_current_stream(self) -> None:
        """Wait: on the CPU there are no streams."""
        self.wait()

    def get_future(self) -> Future:
        """Return a future of the list of tensors that it writes."""
        return WorkFuture(self.result, self.is_completed)


class WorkFuture(Future):
    """Future of a collective. Whoever waits for it carries the collective on."""

    def __init__(self, find: Callable[[], Any], ready: Callable[[], bool]) -> None:
        super().__init__()
        self._find, self._ready = find, ready

    def done(self) -> bool:
        """Return True if the value is there; takes it if the collective is over."""
        if not super().done() and self._ready():
            self._take()
        return super().done()

    def wait(self) -> Any:
        """Wait for the collective, and return the value."""
        if not super().done():
            self._take()
        return self.value()

    def _take(self) -> None:
        with self._lock:
            if super().done():
                return
            try:
                found = self._find()
            except Exception as error:
                self.set_exception(error)
            else:
                self.set_result(found)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """Return a future of the value that `callback` makes of this one, when somebody waits."""
        return WorkFuture(lambda: (self.wait(), callback(self))[1], self.done)
