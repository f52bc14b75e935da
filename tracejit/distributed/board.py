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

# pid, number of the collective, 1 while in it, number of the last that was started, name and sizes
_LINE = struct.Struct("=qqqq96s")
_SIZE = 128
_INSIDE = struct.Struct("=q")
_TEXT = struct.Struct("=qq")  # number, inside
_POSTED, _NAME = 24, 32  # where these begin in a line


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
    """One line a rank. OSError if the file cannot be made, ValueError for a name that is none.

    rank    that this process writes; -1 for a reader
    posted  the caller stores in its one element the number of the last collective that it started
    """

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
        self._start = _SIZE * max(rank, 0)
        if rank >= 0:
            _LINE.pack_into(self._memory, self._start, os.getpid(), -1, 0, -1, b"")
        begin = self._start + _POSTED
        self.posted = memoryview(self._memory)[begin : begin + 8].cast("q")

    def enter(self, number: int, name: str, sizes: str = "") -> None:
        """Write that this rank is in a collective."""
        text = f"{name}\0{sizes}\0".encode()[:96]
        begin = self._start + _NAME
        self._memory[begin : begin + len(text)] = text
        _TEXT.pack_into(self._memory, self._start + 8, number, 1)

    def leave(self) -> None:
        """Write that this rank is outside again."""
        _INSIDE.pack_into(self._memory, self._start + 16, 0)

    def where(self, rank: int) -> str:
        """Return the text of a rank's line, "" if the rank is on another host."""
        pid, number, inside, posted, text = _LINE.unpack_from(self._memory, _SIZE * rank)
        if pid == 0:
            return ""
        if not inside and posted > number:
            return f"outside collectives, after it started number {posted}"
        if number < 0:
            return "outside collectives, and was in none before"
        name, sizes, *_ = (one.decode(errors="replace") for one in (text + b"\0").split(b"\0"))
        place = f"{name} number {number}" + (f" ({sizes})" if sizes else "")
        return f"in {place}" if inside else f"outside collectives, after {place}"

    def everywhere(self) -> dict[int, str]:
        """Return the texts of this host's ranks."""
        found = {rank: self.where(rank) for rank in range(self._size)}
        return {rank: text for rank, text in found.items() if text}

    def unlink(self) -> None:
        """Take the file's name away: whoever has it goes on to see it."""
        unlink(self._name)
