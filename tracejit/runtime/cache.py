"""Compiled kernels, in this process and on disk.

In: Kernels. Out: addresses of their functions. Called by `executable` and by the command line.

    <cache_dir>/kernels/<name>_<sum>.py    the text of each kernel: for pdb, tracebacks and readers
    <cache_dir>/native-<key>/<sum>.pack    the objects of kernels that were compiled together
    <cache_dir>/native-<key>/<digest>      a link to the pack that holds the kernel

The key covers all that decides what a text compiles to: the ABI, the sources of `lowering/`, the
versions of numba, llvmlite and NumPy, and the processor. Files are written beside their place and
renamed into it, never rewritten, so readers need no lock and writers may race. The directory must
be the user's own (0700): what is in it is run. A damaged pack is reported and compiled again; where
the disk cannot be used, a warning says so once and everything still works, in memory.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import stat
import threading
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tracejit import logs
from tracejit.config import flags
from tracejit.lowering.program import Kernel
from tracejit.memory.threads import get_num_threads
from tracejit.runtime import loader

_MAGIC = b"tracejit pack 1\n"
_lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    # A fork waits until no thread is inside LLVM, whose locks the child could never release.
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )
_addresses: dict[str, int] = {}
_warned: set[str] = set()
_unusable: set[Path] = set()
counts = {"compiled": 0, "loaded": 0, "reused": 0}


class CacheWarning(UserWarning):
    """The kernel cache on disk is damaged or cannot be used; results are not affected."""


class Entry(NamedTuple):
    """One pack on disk."""

    path: Path
    nbytes: int
    used: float  # seconds since the epoch
    kernels: int


def functions_of(kernels: Iterable[Kernel], spared: int = 0) -> dict[str, int]:
    """Address of each kernel's function, by digest: from memory, from disk, else compiled, by all
    threads but `spared` ones.

    Raises `lowering.native.KernelError` where a text cannot be compiled.
    """
    wanted = {kernel.digest: kernel for kernel in kernels}
    with _lock:
        missing = [k for k in wanted.values() if k.digest not in _addresses]
        counts["reused"] += len(wanted) - len(missing)
        if missing:
            directory = native_directory()
            if directory is not None:
                missing = _load_from(directory, missing)
            if missing:
                _compile(directory, missing, get_num_threads() - spared)
        return {digest: _addresses[digest] for digest in wanted}


def missing(kernels: Iterable[Kernel]) -> list[Kernel]:
    """Those that neither this process nor the disk has."""
    directory = native_directory()
    return [
        k for k in kernels
        if k.digest not in _addresses
        and (directory is None or not os.path.lexists(directory / k.digest))
    ]


def _load_from(directory: Path, kernels: Sequence[Kernel]) -> list[Kernel]:
    """Load what the directory has; returns the kernels it does not have."""
    packs: dict[str, list[Kernel]] = {}
    missing = []
    for kernel in kernels:
        try:
            packs.setdefault(os.readlink(directory / kernel.digest), []).append(kernel)
        except OSError:
            missing.append(kernel)
    for name, held in packs.items():
        missing += _load_pack(directory / name, held)
    return missing


def _load_pack(path: Path, wanted: list[Kernel]) -> list[Kernel]:
    """Load one pack: all its kernels become known. Returns `wanted` where it cannot be used."""
    from tracejit.lowering.native import symbol_of

    try:
        digests, objects = read_pack(path)
        symbols = [symbol_of(digest) for digest in digests]
        new = loader.load(objects, symbols)
    except FileNotFoundError:
        return wanted  # pruned meanwhile
    except (OSError, ValueError, RuntimeError) as error:
        _warn("damaged", f"kernel cache: {path} is damaged ({error}); compiling again")
        path.unlink(missing_ok=True)
        return wanted
    _addresses.update((d, a) for d, a in zip(digests, new) if d not in _addresses)
    counts["loaded"] += len(digests)
    return [kernel for kernel in wanted if kernel.digest not in _addresses]


def _compile(directory: Path | None, kernels: Sequence[Kernel], threads: int) -> None:
    from tracejit.lowering import native

    objects = native.compile_kernels(kernels, threads)
    symbols = [native.symbol_of(kernel.digest) for kernel in kernels]
    digests = [kernel.digest for kernel in kernels]
    _addresses.update(zip(digests, loader.load(objects, symbols)))
    counts["compiled"] += len(kernels)
    logs.emit("kernels", f"compiled {', '.join(k.name for k in kernels)}")
    if directory is not None:
        try:
            _write(directory, digests, objects)
            for kernel in kernels:
                source_file(kernel)
        except OSError as error:
            _give_up(directory, error)


def _write(directory: Path, digests: Sequence[str], objects: Sequence[bytes]) -> None:
    header = json.dumps({"digests": list(digests), "sizes": [len(o) for o in objects]})
    payload = header.encode() + b"\n" + b"".join(objects)
    check = hashlib.sha256(payload).hexdigest()
    name = f"{check[:32]}.pack"
    _replace(directory / name, _MAGIC + check.encode() + b"\n" + payload)
    for digest in digests:
        beside = directory / f".{digest}.{os.getpid()}.{threading.get_ident()}"
        os.symlink(name, beside)
        os.replace(beside, directory / digest)


def read_pack(path: Path) -> tuple[list[str], list[bytes]]:
    """Digests and objects of a pack; ValueError where its content is not what was written."""
    data = path.read_bytes()
    start = len(_MAGIC) + 65
    check, payload = data[len(_MAGIC) : start - 1], data[start:]
    if data[: len(_MAGIC)] != _MAGIC or hashlib.sha256(payload).hexdigest().encode() != check:
        raise ValueError("its checksum differs")
    line, _, body = payload.partition(b"\n")
    header = json.loads(line)
    objects = []
    for size in header["sizes"]:
        objects.append(body[:size])
        body = body[size:]
    return header["digests"], objects


def source_file(kernel: Kernel) -> str:
    """Path of the file with the kernel's text, written once; a name in <> without a disk."""
    root = root_directory()
    if root is None:
        return f"<kernel {kernel.name}>"
    # Not the digest: comments, which name the user's lines, are no part of that.
    check = hashlib.sha256(kernel.source.encode()).hexdigest()
    path = root / "kernels" / f"{kernel.name}_{check[:16]}.py"
    text = kernel.source.encode()
    try:
        found = path.read_bytes() if path.exists() else None
        if found != text:
            if found is not None:
                _warn("damaged", f"kernel cache: {path} is damaged; it is written again")
            path.parent.mkdir(mode=0o700, exist_ok=True)
            _replace(path, text)
    except OSError as error:
        _give_up(root, error)
        return f"<kernel {kernel.name}>"
    return str(path)


def _replace(path: Path, data: bytes) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with open(beside, "wb") as file:
            file.write(data)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


# -- the directory -------------------------------------------------------------------------------


def root_directory() -> Path | None:
    """The cache directory, made private; None, with one warning, where it cannot be used."""
    root = flags.cache_dir
    return root if _usable(root) else None


def native_directory() -> Path | None:
    """Where this machine's and these versions' objects lie."""
    root = root_directory()
    if root is None:
        return None
    directory = root / f"native-{environment_key()}"
    return directory if _usable(directory) else None


_checked: set[Path] = set()


def _usable(directory: Path) -> bool:
    if directory in _checked and directory.exists():
        return True
    if directory in _unusable:
        return False
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.stat()
        if not stat.S_ISDIR(found.st_mode):
            raise OSError("it is no directory")
        if hasattr(os, "getuid") and found.st_uid != os.getuid():
            raise OSError("it belongs to another user")
        if stat.S_IMODE(found.st_mode) & 0o077:
            directory.chmod(0o700)
    except OSError as error:
        _give_up(directory, error)
        return False
    _checked.add(directory)
    return True


def _give_up(directory: Path, error: OSError) -> None:
    _unusable.add(directory)
    _checked.discard(directory)
    where = f"kernel cache: {directory} cannot be used ({error.strerror or error})"
    _warn("unusable", f"{where}; kernels are compiled in each process. Set TRACEJIT_CACHE_DIR")


def _warn(kind: str, message: str) -> None:
    if kind not in _warned:
        _warned.add(kind)
        warnings.warn(message, CacheWarning, stacklevel=2)
    else:
        logs.emit("kernels", message)


@functools.cache
def environment_key() -> str:
    """A digest of everything but the text that decides what a kernel compiles to."""
    import llvmlite
    import numpy

    from tracejit.lowering import abi, native

    total = hashlib.sha256()
    for part in (abi.VERSION, llvmlite.__version__, numpy.__version__, *native.host_cpu()):
        total.update(f"{part}\n".encode())
    spec = importlib.util.find_spec("numba")
    origin = Path(spec.origin).parent / "_version.py" if spec and spec.origin else Path("absent")
    if origin.exists():
        total.update(origin.read_bytes())
    for path in sorted(Path(abi.__file__).parent.glob("*.py")):
        total.update(path.read_bytes())
    return total.hexdigest()[:16]


# -- looking after it ----------------------------------------------------------------------------


def entries() -> list[Entry]:
    """Every pack in the cache directory, of all versions and machines."""
    root = root_directory()
    found = []
    for path in sorted(root.glob("native-*/*.pack")) if root else []:
        try:
            status = path.stat()
            kernels = len(read_pack(path)[0])
        except (OSError, ValueError):
            kernels = 0
        found.append(Entry(path, status.st_size, max(status.st_atime, status.st_mtime), kernels))
    return found


def prune(max_bytes: int = 0) -> int:
    """Remove packs, longest unused first, until `max_bytes` are left; returns bytes removed."""
    packs = sorted(entries(), key=lambda entry: entry.used)
    excess = sum(entry.nbytes for entry in packs) - max_bytes
    removed = 0
    for entry in packs:
        if removed >= excess:
            break
        entry.path.unlink(missing_ok=True)
        removed += entry.nbytes
        for link in entry.path.parent.iterdir():
            if link.is_symlink() and os.readlink(link) == entry.path.name:
                link.unlink(missing_ok=True)
    return removed


def statistics() -> dict[str, Any]:
    """Kernels compiled, loaded from disk and found in memory by this process; packs on disk."""
    packs = entries()
    return {**counts, "packs": len(packs), "disk_bytes": sum(e.nbytes for e in packs)}
