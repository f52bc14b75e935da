"""Pass over a loader with worker processes.

In: a loader. Out: its batches, in the order of its sampler. Batch k is the task of worker k mod n.
Each worker answers through a pipe of its own, so the order needs no sorting.
"""

from __future__ import annotations

import functools
import itertools
import multiprocessing.connection
import os
import weakref
from collections import deque
from typing import Any, NamedTuple, NoReturn

from tracejit.core.ops import sealing as _sealing
from tracejit.utils.data import start, worker
from tracejit.utils.data.sampler import fresh_seed

_PATIENCE = 5.0  # seconds that a worker may take to end by itself


class Worker(NamedTuple):
    """Worker process: its tasks go into a queue, its answers come through a pipe."""

    process: Any
    tasks: Any
    answers: Any


class Pool:
    """Worker processes of a loader, and which of them owe an answer."""

    def __init__(self, loader: Any) -> None:
        self.count, self.timeout = loader.num_workers, loader.timeout or None
        seed = fresh_seed(loader.generator)
        context = start.context_of(loader.multiprocessing_context)
        make = functools.partial(loader._fetcher_class, batched=loader._auto_collation,
                                 collate=loader.collate_fn, drop_last=loader.drop_last)
        self.asked: deque[int] = deque()  # the workers of the batches asked for, in order
        self.passes = 0
        self._workers: list[Worker] = []
        # Also at the interpreter's exit, and where starting one fails.
        self.close = weakref.finalize(self, _shut_down, self._workers, os.getpid())
        try:
            for k in range(self.count):
                assignment = worker.Assignment(k, self.count, loader.dataset, make, seed,
                                               loader.worker_init_fn, os.getpid())
                self._workers.append(_started(context, assignment))
        except BaseException:
            self.close()
            raise

    def begin(self) -> int:
        """Begin another pass, drop what is left of the last one, and return its number."""
        self.passes += 1
        for k in range(self.count if self.passes > 1 else 0):
            self.tell(k, (worker.RESUME, None))
            # Answers of the last pass are still in the pipe, before the one to RESUME.
            while (answer := self.receive(k))[0] != worker.RESUMED:
                if answer[0] == worker.ERROR and k not in self.asked:
                    answer[1].raise_again()
                if k in self.asked:
                    self.asked.remove(k)
        self.asked.clear()
        return self.passes

    def ask(self, k: int, index: Any) -> None:
        """Give worker k a task."""
        self.tell(k, ("fetch", index))
        self.asked.append(k)

    def tell(self, k: int, message: Any) -> None:
        self._workers[k].tasks.put(message)

    def first_ready(self, among: set[int]) -> int:
        """Return a worker whose answer is there."""
        waiting = {self._workers[k].answers: k for k in among}
        # A worker that died answers nothing: wake up for its end too.
        ends = [self._workers[k].process.sentinel for k in among]
        ready = multiprocessing.connection.wait([*waiting, *ends], self.timeout)
        return next((waiting[c] for c in ready if c in waiting), min(among))

    def receive(self, k: int) -> tuple[int, Any]:
        """Return the next answer of worker k. RuntimeError where it died, or none comes in time."""
        each = self._workers[k]
        ready = multiprocessing.connection.wait([each.answers, each.process.sentinel], self.timeout)
        if not ready:
            self._fail(f"DataLoader timed out after {self.timeout} seconds")
        try:
            if not each.answers.poll():  # the process ended, and left nothing
                raise EOFError
            return worker.received(each.answers)
        except (EOFError, OSError):
            each.process.join(_PATIENCE)
            self._fail(f"DataLoader worker (pid(s) {each.process.pid}) exited unexpectedly")

    def _fail(self, message: str) -> NoReturn:
        self.asked.clear()
        for each in self._workers:
            each.process.terminate()
        self.close()
        raise RuntimeError(message)


class ParallelIterator:
    """Iterator of a loader with `num_workers > 0`."""

    def __init__(self, loader: Any, pool: Pool) -> None:
        self._loader, self._pool = loader, pool
        self._number = pool.begin()
        self._indices = iter(loader._index_sampler)
        self._ended: set[int] = set()
        self._turns = itertools.cycle(range(pool.count))
        self._fetched = 0
        for _ in range(loader.prefetch_factor * pool.count):
            self._submit()

    def _submit(self) -> None:
        """Give the next task, if there is one, to the worker whose turn it is."""
        if len(self._ended) == self._pool.count:
            return
        try:
            index = next(self._indices)
        except StopIteration:
            return
        self._pool.ask(next(k for k in self._turns if k not in self._ended), index)

    def __iter__(self) -> ParallelIterator:
        return self

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def __next__(self) -> Any:
        self._loader._tell_recorder()
        if self._number != self._pool.passes:
            raise RuntimeError("another pass over this DataLoader has begun, with the same workers")
        asked = self._pool.asked
        while asked:
            # In order: wait for the oldest task, whichever answer is there first.
            k = asked[0] if self._loader.in_order else self._pool.first_ready(set(asked))
            asked.remove(k)
            kind, content = self._pool.receive(k)
            if kind == worker.ENDED:
                self._end_of(k)
                self._submit()
                continue
            self._submit()
            if kind == worker.ERROR:
                content.raise_again()
            self._fetched += 1
            self._loader._count_fetched(self._fetched)
            return content
        if not self._loader.persistent_workers:
            self._pool.close()
        raise StopIteration

    def _end_of(self, k: int) -> None:
        if k in self._ended:
            return
        self._ended.add(k)
        if not self._loader.persistent_workers:
            self._pool.tell(k, None)


def _started(context: Any, assignment: worker.Assignment) -> Worker:
    answers, results = context.Pipe(duplex=False)
    worker.loader_ends.add(answers)
    tasks = context.Queue()
    # The loader must not wait at its exit for tasks that no worker takes any more.
    tasks.cancel_join_thread()
    process = context.Process(target=worker.run, args=(assignment, tasks, results), daemon=True)
    with start.starting():
        process.start()
    results.close()  # the worker's alone now: its death breaks the pipe
    return Worker(process, tasks, answers)


def _shut_down(workers: list[Worker], owner: int) -> None:
    if os.getpid() != owner:
        return  # a forked child has copies of the objects, not of the processes
    # All are told first, then joined: they end at the same time.
    for each in workers:
        each.tasks.put(None)
        each.answers.close()
    for each in workers:
        each.process.join(_PATIENCE)
        if each.process.is_alive():
            each.process.terminate()
            each.process.join()
        each.tasks.close()
    workers.clear()


_sealing.seal_all(globals())
