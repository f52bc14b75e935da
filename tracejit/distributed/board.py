"""The board of a host: which collective each of its ranks is in.

In: plain stores into a file that the host's ranks map into memory. Out: texts such as "in
all_reduce number 17". Called by `watch`, before and after a rank waits in a collective.

The file lies in the folder for temporary files, under a name that nobody can guess. It loses its
name once all ranks of the job have it.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import stat
import struct
import tempfile

# pid, number of the collective, 1 while in it, its name
_LINE = struct.Struct("=qqq40s")
_SIZE = 64
_OUTSIDE = struct.Struct("=q")


def path(name: str) -> str:
    """Return the place of a board's file; ValueError for a name that is none."""
    if not re.fullmatch("[0-9a-f]{32}", name):
        raise ValueError("the board's name is none")
    return os.path.join(tempfile.gettempdir(), f"tracejit-board-{name}")


def unlink(name: str) -> None:
    """Take a file's name away: whoever has it goes on to see it."""
    with contextlib.suppress(OSError):
        os.unlink(path(name))


class Board:
    """One line a rank. OSError if the file cannot be made, ValueError for a name that is none."""

    def __init__(self, name: str, rank: int, world_size: int) -> None:
        self._name, self._size = name, world_size
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        file = os.open(path(name), flags, 0o600)
        try:
            found = os.fstat(file)
            if found.st_uid != os.getuid() or not stat.S_ISREG(found.st_mode):
                raise PermissionError(f"{path(name)} belongs to another user")
            os.ftruncate(file, _SIZE * world_size)  # all ranks choose the same size
            self._memory = mmap.mmap(file, _SIZE * world_size)
        finally:
            os.close(file)
        self._start = _SIZE * rank
        _LINE.pack_into(self._memory, self._start, os.getpid(), -1, 0, b"")

    def enter(self, number: int, name: str) -> None:
        """Write that this rank is in a collective."""
        _LINE.pack_into(
            self._memory, self._start, os.getpid(), number, 1, name.encode()[:40]
        )  # fmt: skip

    def leave(self) -> None:
        """Write that this rank is outside again."""
        _OUTSIDE.pack_into(self._memory, self._start + 16, 0)

    def where(self, rank: int) -> str:
        """Return the text of a rank's line, "" if the rank is on another host."""
        pid, number, inside, name = _LINE.unpack_from(self._memory, _SIZE * rank)
        if pid == 0:
            return ""
        if number < 0:
            return "outside collectives, and was in none before"
        text = f"{name.partition(bytes(1))[0].decode(errors='replace')} number {number}"
        return f"in {text}" if inside else f"outside collectives, after {text}"

    def everywhere(self) -> dict[int, str]:
        """Return the texts of this host's ranks."""
        found = {rank: self.where(rank) for rank in range(self._size)}
        return {rank: text for rank, text in found.items() if text}

    def unlink(self) -> None:
        """Take the file's name away: whoever has it goes on to see it."""
        unlink(self._name)
