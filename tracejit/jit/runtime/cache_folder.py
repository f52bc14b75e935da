"""Folder of the kernel cache: the parts that may be read or written, and the warnings where not.

In: `flags.cache_dir`. Out: folders that no other user can write, files read and written safely.
Called by `cache`, `packs`, `cuda_kernels`, `cache_upkeep` and the command line.

The package runs what is in the folder. So a folder is trusted only if it belongs to the user or to
root, and no other user can write it. Where others can write it (`/tmp`), a private subfolder is
used. The mode of a folder that was there before is never changed. A folder that cannot be written
is still read: a container's image may bring one. The folder itself may be a symbolic link, for the
user chose it; its target is judged. Links inside are refused (docs/shipping_the_cache.md).
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import warnings
from pathlib import Path

from tracejit import logs
from tracejit.config import flags

_A_LINK = "it is a symbolic link"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_OPEN |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
MOST_BYTES = 1 << 30  # of one file
_EACH = "what is missing is compiled in each process"
_FIX = "Set TRACEJIT_CACHE_DIR, or see `python -m tracejit doctor`"
_warned: set[str] = set()
_trusted: set[Path] = set()
_unusable: set[Path] = set()
_read_only: set[Path] = set()  # writing there failed


class CacheWarning(UserWarning):
    """Warning that the kernel cache on disk is damaged or cannot be used. Results stay right."""


# -- folders -------------------------------------------------------------------------------------


def root_directory() -> Path | None:
    """Return the folder of the cache, made if need be; None, with a warning, where none can be
    used."""
    root = flags.cache_dir
    if not _usable(root, parents=True, shared=True):
        return None
    if hasattr(os, "getuid") and _others_write(root):
        root = root / f"tracejit-{os.getuid()}"
        return root if _usable(root) else None
    return root


def subfolder(name: str) -> Path | None:
    """Return a folder inside the cache's, made if need be; None, with a warning, where it cannot be
    used."""
    root = root_directory()
    if root is None:
        return None
    path = root / name
    if not os.path.lexists(path) and not os.access(root, os.W_OK):
        warn("unusable", f"{root} cannot be written and has no {name}: {_EACH}. {_FIX}")
        return None
    return path if _usable(path) else None


def _usable(path: Path, parents: bool = False, shared: bool = False) -> bool:
    if path in _trusted and os.path.exists(path):
        return True
    if path in _unusable:
        return False
    try:
        if not os.path.lexists(path):
            path.mkdir(mode=0o700, parents=parents, exist_ok=True)
        reason = _distrust(path, shared)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    if reason:
        _trusted.discard(path)
        _unusable.add(path)
        warn("unusable", f"tracejit cannot use {path} ({reason}): {_EACH}. {_FIX}")
        return False
    _trusted.add(path)
    return True


def _distrust(path: Path, shared: bool) -> str:
    """Return the reason why the folder's files may not be run, or "" where they may."""
    found = path.stat() if shared else path.lstat()  # the user may choose to link the whole folder
    if stat.S_ISLNK(found.st_mode):
        return _A_LINK
    if not stat.S_ISDIR(found.st_mode):
        return "it is no directory"
    if shared and found.st_mode & _OTHERS_WRITE:
        return ""  # a subfolder will be used
    return _untrusted(found)


def _untrusted(found: os.stat_result) -> str:
    if not hasattr(os, "getuid"):
        return ""
    if found.st_uid not in (os.getuid(), 0):
        return f"it belongs to user {found.st_uid}, and this process runs as {os.getuid()}"
    return "others can write it" if found.st_mode & _OTHERS_WRITE else ""


def _others_write(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & _OTHERS_WRITE)
    except OSError:
        return False


def writable(folder: Path) -> bool:
    """Return False where an earlier write to the folder failed."""
    return folder not in _read_only


def stop_writing(folder: Path, error: OSError) -> None:
    """Note that the folder cannot be written, and warn. It is still read."""
    _read_only.add(folder)
    warn("unusable", f"tracejit cannot use {folder} for new kernels "
                     f"({error.strerror or error}): {_EACH}. {_FIX}")


def warn(kind: str, message: str) -> None:
    """Give a CacheWarning the first time for each kind; log later messages under `kernels`."""
    message = f"kernel cache: {message}"
    if kind in _warned:
        logs.emit("kernels", message)
    else:
        _warned.add(kind)
        warnings.warn(message, CacheWarning, stacklevel=2)


# -- files ---------------------------------------------------------------------------------------


def read_file(path: Path) -> bytes:
    """Return the content of a plain file that no other user can write.

    Raises FileNotFoundError where there is none, ValueError for a link, pipe, folder or a file that
    others can write.
    """
    try:
        number = os.open(path, _OPEN)
    except FileNotFoundError:
        raise
    except OSError as error:
        link = error.errno == errno.ELOOP
        raise ValueError(_A_LINK if link else error.strerror or str(error)) from error
    try:
        found = os.fstat(number)
        reason = _untrusted(found) if stat.S_ISREG(found.st_mode) else "it is no file"
        if reason:
            raise ValueError(reason)
        return _whole(number, found.st_size)
    finally:
        os.close(number)


def _whole(number: int, size: int) -> bytes:
    if size > MOST_BYTES:
        raise ValueError(f"it has {size} bytes")
    parts = []
    try:
        while part := os.read(number, 1 << 24):
            parts.append(part)
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error
    return b"".join(parts)


def write_file(path: Path, data: bytes) -> None:
    """Write beside the file's place and rename into it: readers see all of the file or none.

    Raises OSError where that cannot be done, and leaves nothing behind.
    """
    beside = temporary(path)
    try:
        with open(beside, "xb") as file:
            file.write(data)
        os.replace(beside, path)
    finally:
        remove_file(beside)


def write_link(path: Path, target: str) -> None:
    """Make a link to `target` in one step. Raises OSError where that cannot be done."""
    beside = temporary(path)
    try:
        os.symlink(target, beside)
        os.replace(beside, path)
    finally:
        remove_file(beside)


def temporary(path: Path) -> Path:
    """Return the path a file has before it is renamed. The name holds the numbers of process and
    thread."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    remove_file(beside)  # left by a killed process that had this number
    return beside


def remove_file(path: Path) -> bool:
    """Remove a file or a link and return True; False where it cannot be removed."""
    try:
        path.unlink()
    except OSError:
        return False
    return True
