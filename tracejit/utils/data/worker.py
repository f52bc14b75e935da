"""Worker process of the loader: fetches batches that the loader asks for.

In: tasks from a queue: what to fetch, `RESUME` at the start of another pass, None at the end. Out:
one message for each but the last. The worker has a pipe of its own, so messages arrive in the order
of the tasks. A worker ends when the loader does, or its process.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import queue
import random
import sys
import traceback
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from tracejit.core.eager.tracebacks import hide
from tracejit.core.memory import Storage, set_num_threads, storage_of_array
from tracejit.core.ops.generators import MASK, manual_seed

RESUME = "resume"
BATCH, ERROR, ENDED, RESUMED = range(4)
PARENT_CHECK = 5.0  # seconds between looks at whether the loader's process is still there
# The loader's ends of all pipes: a forked worker has copies, which would keep pipes from breaking.
loader_ends: weakref.WeakSet[Connection] = weakref.WeakSet()


@dataclass(frozen=True)
class WorkerInfo:
    """Result of `get_worker_info` in a worker process.

    seed     seed of Python's and tracejit's generators here
    dataset  this process's copy
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return the number and data of this worker process; None in any other process.

    >>> get_worker_info() is None
    True
    """
    return _info


class RaisedInWorker:
    """Exception on its way to the loader's process, with the text of its traceback."""

    def __init__(self, error: BaseException, worker: int) -> None:
        self.kind: Any = type(error)
        hide(error)
        text = "".join(traceback.format_exception(error))
        self.text = f"Caught {self.kind.__name__} in DataLoader worker process {worker}.\n" \
                    f"Original {text}"

    def raise_again(self) -> None:
        """Raise an exception of the same type, or RuntimeError where it takes other arguments."""
        # KeyError shows the repr of its argument, all in one line.
        if self.kind is KeyError:
            raise KeyError(_Verbatim(self.text))
        try:
            error = self.kind(self.text)
        except Exception:
            error = RuntimeError(self.text)
        raise error


class _Verbatim(str):
    """Text that KeyError shows as it is, in lines."""

    def __repr__(self) -> str:
        return str(self)


@dataclass
class Assignment:
    """Arguments with which a worker starts."""

    worker: int
    workers: int
    dataset: Any
    fetcher: Callable[[Any], Any]  # makes a fetcher of the dataset
    seed: int
    init: Callable[[int], Any] | None
    parent: int


def run(assignment: Assignment, tasks: Any, results: Connection) -> None:
    """Run the worker process: its main function."""
    for connection in list(loader_ends):
        connection.close()
    try:
        _serve(assignment, tasks, results)
    except (KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
        pass  # the loader's process is told itself, or wants no more
    finally:
        tasks.cancel_join_thread()
        results.close()


def _serve(assignment: Assignment, tasks: Any, results: Connection) -> None:
    failed: RaisedInWorker | None = None
    fetcher = None
    alive = _watch_of(assignment.parent)
    try:
        _prepare(assignment)
        fetcher = assignment.fetcher(assignment.dataset)
    except Exception as error:
        failed = RaisedInWorker(error, assignment.worker)
    while (task := _next_task(tasks, alive)) is not None:
        message: tuple[int, Any]
        try:
            if failed is not None:
                message, failed = (ERROR, failed), None
            elif task[0] == RESUME:
                fetcher = assignment.fetcher(assignment.dataset)
                message = RESUMED, None
            elif fetcher is None:
                message = ENDED, None
            else:
                message = BATCH, fetcher.fetch(task[1])
        except StopIteration:
            message = ENDED, None
        except Exception as error:
            message = ERROR, RaisedInWorker(error, assignment.worker)
        for part in _packed(message, assignment.worker):
            results.send_bytes(part)


def _prepare(assignment: Assignment) -> None:
    global _info
    # The processes run beside each other already.
    set_num_threads(1)
    seed = assignment.seed + assignment.worker
    random.seed(seed)
    manual_seed(seed & MASK)
    # NumPy's seed has 32 bits: more words keep workers apart.
    words = np.random.SeedSequence([assignment.seed, assignment.worker]).generate_state(4)
    np.random.seed(words)
    _info = WorkerInfo(assignment.worker, assignment.workers, seed, assignment.dataset)
    if assignment.init is not None:
        assignment.init(assignment.worker)


def _watch_of(parent: int) -> Callable[[], bool]:
    """Return a function that says if the loader's process is still there."""
    if os.getppid() == parent:
        return lambda: os.getppid() == parent  # an orphan has another parent
    loader = multiprocessing.parent_process()  # a fork server is the parent
    return lambda: loader is not None and loader.is_alive()


def _next_task(tasks: Any, alive: Callable[[], bool]) -> Any:
    while True:
        try:
            return tasks.get(timeout=PARENT_CHECK)
        except queue.Empty:
            # The loader's process was killed.
            if not alive():
                return None


def _packed(message: tuple[int, Any], worker: int) -> list[Any]:
    """Return a message in parts. If it cannot be pickled, return an error of the worker's."""
    try:
        return in_parts(message)
    except Exception as error:
        raised = RaisedInWorker(error, worker)
        if message[0] == ERROR:  # an exception whose type is known here only
            raised.text = message[1].text
            raised.kind = RuntimeError
        elif not _can_be_named(raised.kind):
            raised.kind = RuntimeError
        return in_parts((ERROR, raised))


class _Pickler(pickle.Pickler):
    """Leaves the bytes of storages beside the pickle."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Storage) and obj.device.type == "cpu":
            # Out of band: the bytes are not copied into the pickle.
            block: Any = np.ascontiguousarray(obj.block[: obj.nbytes])
            return _storage_over, (pickle.PickleBuffer(block),)
        return NotImplemented


def _storage_over(data: Any) -> Storage:
    return storage_of_array(np.frombuffer(data, np.uint8))


def in_parts(message: Any) -> list[Any]:
    """Return the sizes of the buffers that belong to a pickle, the pickle, and these buffers."""
    buffers: list[pickle.PickleBuffer] = []
    file = io.BytesIO()
    _Pickler(file, 5, buffer_callback=buffers.append).dump(message)
    raw = [buffer.raw() for buffer in buffers]
    return [np.array([r.nbytes for r in raw], np.int64).tobytes(), file.getvalue(), *raw]


def received(answers: Connection) -> Any:
    """Return a message from its parts, as they come through a pipe."""
    sizes, data = np.frombuffer(answers.recv_bytes(), np.int64), answers.recv_bytes()
    buffers = [bytearray(size) for size in sizes.tolist()]
    for buffer in buffers:
        answers.recv_bytes_into(buffer)
    return pickle.loads(data, buffers=buffers)


def _can_be_named(kind: type) -> bool:
    try:
        pickle.dumps(kind)
    except Exception:
        return False
    return sys.modules.get(kind.__module__) is not None
