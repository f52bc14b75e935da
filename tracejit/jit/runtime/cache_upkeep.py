"""Upkeep of the kernel cache on disk: list packs, and remove those that are not wanted.

In: the cache's folder. Out: its packs, and bytes removed. Called by the command line and `doctor`.
Only files that the cache itself makes are removed, and no link is followed out of the folder.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tracejit.jit.runtime import cache, cache_folder
from tracejit.jit.runtime.packs import Contents, contents

_PACK = re.compile(r"[^.].*\.pack")
_SOURCE = re.compile(r"\w+_[0-9a-f]{16}\.py")
_LINK = re.compile(r"\w+")
_TEMPORARY = re.compile(r"\..+\.(\d+)\.\d+")
_HOUR = 3600.0


class Entry(NamedTuple):
    """Pack on disk. `function` is the captured function that its kernels were compiled for first;
    other functions may use them too."""

    path: Path
    nbytes: int
    used: float  # seconds since the epoch
    kernels: int  # 0: it is damaged
    names: tuple[str, ...] = ()
    function: str = ""

    def serves(self, patterns: Sequence[str]) -> bool:
        """Return True if the function has one of these names, in full or its last parts."""
        return any(
            fnmatch.fnmatchcase(self.function, pattern)
            or fnmatch.fnmatchcase(self.function, f"*.{pattern}")
            for pattern in patterns
        )


def entries() -> list[Entry]:
    """Return every pack in the cache directory, of all versions and machines."""
    found = []
    for folder in _folders("native-"):
        for path in _named(folder, _PACK):
            try:
                held = contents(cache_folder.read_file(path), folder.name)
            except (OSError, ValueError):
                held = Contents([], [], [], "")
            more = (len(held.digests), tuple(held.names), held.function)
            found += [Entry(*seen, *more) for seen in _seen(path)]
    return found


def statistics() -> dict[str, Any]:
    """Return how many kernels this process compiled, loaded from disk or found in memory, and what
    packs are on disk."""
    packs = entries()
    return {**cache.counts, "packs": len(packs), "disk_bytes": sum(e.nbytes for e in packs)}


def prune(max_bytes: int = 0, functions: Sequence[str] = ()) -> int:
    """Remove packs and sources, longest unused first, until at most `max_bytes` are left.

    `functions` names captured functions, also by patterns as in `*.train_*`: then only packs that
    were compiled for them count and are removed. Files that killed processes left half written go
    as well. Return the bytes removed.
    """
    natives, others = list(_folders("native-")), list(_folders("kernels"))
    removed = sum(_remove_leftovers(folder) for folder in natives + others)
    files = _wanted(functions) if functions else [
        seen for folders, names in ((natives, _PACK), (others, _SOURCE))
        for folder in folders for path in _named(folder, names) for seen in _seen(path)
    ]  # fmt: skip
    excess = sum(size for _, size, _ in files) - max_bytes
    for path, size, _ in sorted(files, key=lambda seen: seen[2]):
        if excess > 0 and cache_folder.remove_file(path):
            removed += size
            excess -= size
    for folder in natives:
        _remove_dead_links(folder)
    for folder in natives + others:
        _remove_if_empty(folder)
    return removed


def _wanted(functions: Sequence[str]) -> list[tuple[Path, int, float]]:
    """Return packs of these functions, and sources of kernels that no other pack holds."""
    every = entries()
    mine = [entry for entry in every if entry.serves(functions)]
    names = {name for entry in mine for name in entry.names}
    names -= {name for entry in every if entry not in mine for name in entry.names}
    files = [(entry.path, entry.nbytes, entry.used) for entry in mine]
    for folder in _folders("kernels"):
        for path in _named(folder, _SOURCE):
            if path.stem.rpartition("_")[0] in names:
                files += _seen(path)
    return files


def _folders(prefix: str) -> Iterator[Path]:
    """Yield the cache's folders whose names start with `prefix`, in order."""
    root = cache_folder.root_directory()
    for path in _listed(root) if root else []:
        if path.name.startswith(prefix) and os.path.isdir(path) and not os.path.islink(path):
            yield path


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _named(folder: Path, names: re.Pattern) -> list[Path]:
    return [path for path in _listed(folder) if names.fullmatch(path.name)]


def _seen(path: Path) -> list[tuple[Path, int, float]]:
    """Return the file with its size and the time of its last use, as a list; empty where it is no
    file."""
    try:
        found = path.lstat()
    except OSError:
        return []
    used = max(found.st_atime, found.st_mtime)
    return [(path, found.st_size, used)] if stat.S_ISREG(found.st_mode) else []


def _remove_leftovers(folder: Path) -> int:
    removed = 0
    for path in _named(folder, _TEMPORARY):
        process = int(_TEMPORARY.fullmatch(path.name)[1])  # type: ignore[index]
        for _, size, used in _seen(path):
            if time.time() - used > _HOUR or not _runs(process):
                removed += size * cache_folder.remove_file(path)
        if os.path.islink(path) and not _runs(process):
            cache_folder.remove_file(path)
    return removed


def _runs(process: int) -> bool:
    if os.name == "nt":  # there `os.kill` would end the process
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _remove_dead_links(folder: Path) -> None:
    for path in _named(folder, _LINK):
        # Path's methods raise errors for some links, such as a circle; these never do.
        if os.path.islink(path) and not os.path.exists(path):
            cache_folder.remove_file(path)


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        pass
