"""A store in a file that all processes of a job can reach.

In: the file's name. Out: a `FileStore`. Called by programs, and by `rendezvous` for file://.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import weakref
from collections.abc import Iterator
from typing import IO

from tracejit.core.memory import forks
from tracejit.distributed import store_protocol
from tracejit.distributed.store_base import Store
from tracejit.distributed.store_protocol import Table

_POLL = 0.005  # seconds between two looks into a file


class FileStore(Store):
    """A store in a file that all processes can reach; they lock it by turns.

    file_name   a file that does not exist yet, or that others of the job made
    world_size  the last of so many processes removes the file; nobody does if it is -1, or if the
                file was there before them

    The file holds every change, one after the other: a process that is killed in the middle of one
    leaves a piece that the next process cuts off. Raises OSError for a file that cannot be made.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     one, other = FileStore(f"{folder}/store"), FileStore(f"{folder}/store")
    ...     one.set("seed", "7")
    ...     other.get("seed")
    b'7'
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self._path, self._size = file_name, world_size
        self._table, self._read = Table(), 0
        self._lock = forks.rlock()
        made = _make(file_name)
        self._ask([b"add", b"refcount/", b"1"], 0)
        self._close = weakref.finalize(self, _leave_file, file_name, world_size, os.getpid(), made)

    @property
    def path(self) -> str:
        """The file's name."""
        return self._path

    def close(self) -> None:
        """Leave the file, and remove it if this is the last process."""
        self._close()

    def _ask(self, request: list[bytes], seconds: float) -> list[bytes]:
        deadline = time.monotonic() + seconds
        while (answer := self._once(request)) is None:
            if time.monotonic() >= deadline:
                raise TimeoutError
            time.sleep(min(_POLL, max(deadline - time.monotonic(), 0)))
        return answer

    def _once(self, request: list[bytes]) -> list[bytes] | None:
        changes = request[0] in store_protocol.CHANGING
        with self._lock, _locked(self._path, changes) as file:
            self._catch_up(file)
            answer = store_protocol.operate(self._table, request)
            if changes and answer is not None:
                file.truncate(self._read)  # a change that was cut short
                file.seek(self._read)
                file.write(store_protocol.pack(request))
                file.flush()
                self._read = file.tell()
        return answer

    def _catch_up(self, file: IO[bytes]) -> None:
        """Repeat the changes that other processes made."""
        file.seek(self._read)
        new = bytearray(file.read())
        before = len(new)
        while (change := store_protocol.unpack(new)) is not None:
            store_protocol.operate(self._table, change)
        self._read += before - len(new)


@contextlib.contextmanager
def _locked(path: str, changes: bool) -> Iterator[IO[bytes]]:
    """Open the file and keep others from changing it."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX if changes else fcntl.LOCK_SH)
        yield file  # closing gives the lock back


def _make(path: str) -> bool:
    """Make the file; return False if it was there."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    return True


def _leave_file(path: str, world_size: int, pid: int, made: bool) -> None:
    if os.getpid() != pid or not os.path.exists(path):  # a forked child never came
        return
    store = FileStore.__new__(FileStore)
    store._path, store._table, store._read, store._lock = path, Table(), 0, forks.rlock()
    if made:
        store._ask([b"add", b"made/", b"1"], 0)
    left = int(store._ask([b"add", b"refcount/", b"-1"], 0)[0])
    gone = int(store._ask([b"add", b"cleanup/", b"1"], 0)[0])
    ours = store._ask([b"check", b"made/"], 0)[0] == b"1"
    if left <= 0 and 0 <= world_size <= gone and ours:
        with contextlib.suppress(OSError):
            os.unlink(path)
