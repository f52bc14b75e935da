"""Compiled kernels, in this process and on disk.

In: Kernels. Out: addresses of their functions. Called by `executable`, by all of `runtime/` that
compiles a text of its own, and by `debug/` for reports.

    <cache_dir>/kernels/<name>_<sum>.py    the text of each kernel: for pdb, tracebacks and readers
    <cache_dir>/native-<key>/<sum>.pack    the objects of kernels that were compiled together
    <cache_dir>/native-<key>/<digest>      a link to the pack that holds the kernel

The key covers all that decides what a text compiles to. That is the ABI, the sources of
`lowering/`, the versions of numba, llvmlite and NumPy, and the target. Files are written beside
their place and renamed into it, never rewritten, so readers need no lock and writers may race. A
damaged pack is reported and compiled again. Where the disk cannot be used, one warning says so, and
everything works in memory (`cache_folder`).
"""

from __future__ import annotations

import errno
import functools
import hashlib
import importlib.util
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tracejit import logs
from tracejit.config import flags
from tracejit.core.memory import forks
from tracejit.core.memory.threads import get_num_threads
from tracejit.jit.lowering.program import Kernel
from tracejit.jit.runtime import cache_folder, loader, progress
from tracejit.jit.runtime.cache_folder import CacheWarning, root_directory, subfolder
from tracejit.jit.runtime.packs import MAGIC, pack_of, read_pack, write_pack

__all__ = [
    "CacheWarning", "compiling_for", "counts", "damaged", "environment_key", "functions_of",
    "keep", "missing", "native_directory", "root_directory", "source_file",
    "was_compiled",
]
_lock = forks.rlock_awaited()  # a fork waits for it: LLVM runs while it is held
_addresses: dict[str, int] = {}
counts = {"compiled": 0, "loaded": 0, "reused": 0}
_compiled: set[str] = set()  # keys of kernels that this process compiled
_wanted = threading.local()  # `function`: the captured function that kernels are compiled for


@contextmanager
def compiling_for(function: str) -> Iterator[None]:
    """Write this function's name into the packs that the thread makes within the block."""
    before = function_at_work()
    _wanted.function = function
    try:
        yield
    finally:
        _wanted.function = before


def function_at_work() -> str:
    """Return the captured function that this thread compiles for; empty outside of any."""
    return getattr(_wanted, "function", "")


def _known(digest: str) -> str:
    """Return the key of a kernel's address: kernels for another target are other code."""
    return digest if flags.target == "native" else f"{digest} {flags.target}"


def was_compiled(digest: str) -> bool:
    """Return True if this process compiled a kernel, rather than load it from disk."""
    return _known(digest) in _compiled


def functions_of(kernels: Iterable[Kernel], spared: int = 0) -> dict[str, int]:
    """Return the address of each kernel's function, by digest: from memory, from disk, else
    compiled.

    spared  threads that do not compile

    Raises `lowering.native.KernelError` where a text cannot be compiled.
    """
    wanted = {kernel.digest: kernel for kernel in kernels}
    with _lock:
        missing = [k for k in wanted.values() if _known(k.digest) not in _addresses]
        counts["reused"] += len(wanted) - len(missing)
        if missing:
            directory = native_directory()
            if directory is not None:
                missing = _load_from(directory, missing)
            if missing:
                _compile(directory, missing, get_num_threads() - spared)
        return {digest: _addresses[_known(digest)] for digest in wanted}


def missing(kernels: Iterable[Kernel]) -> list[Kernel]:
    """Return the kernels that neither this process nor the disk has."""
    directory = native_directory()
    return [
        k for k in kernels
        if _known(k.digest) not in _addresses
        and (directory is None or not os.path.lexists(directory / k.digest))
    ]


def _load_from(directory: Path, kernels: Sequence[Kernel]) -> list[Kernel]:
    """Load the kernels that the directory has, and return the others."""
    packs: dict[Path, list[Kernel]] = {}
    missing = []
    for kernel in kernels:
        path = pack_of(directory, kernel.digest)
        if path is None:
            missing.append(kernel)
        else:
            packs.setdefault(path, []).append(kernel)
    for path, held in packs.items():
        missing += _load_pack(path, held)
    return missing


def _load_pack(path: Path, wanted: list[Kernel]) -> list[Kernel]:
    """Load one pack with all its kernels. Return the `wanted` kernels that are still missing."""
    from tracejit.jit.lowering.native import symbol_of

    try:
        digests, objects = read_pack(path)
        symbols = [symbol_of(digest) for digest in digests]
        new = loader.load(objects, symbols)
    except FileNotFoundError:
        return wanted  # another process removed it meanwhile
    except (OSError, ValueError, RuntimeError) as error:
        damaged(path, error)
        return wanted
    for digest, address in zip(digests, new):
        _addresses.setdefault(_known(digest), address)
    counts["loaded"] += len(digests)
    return [kernel for kernel in wanted if _known(kernel.digest) not in _addresses]


def damaged(path: Path, error: Exception) -> None:
    """Warn that a pack is damaged, and remove it if possible."""
    cache_folder.warn("damaged", f"{path} is damaged ({error}); compiling again")
    cache_folder.remove_file(path)


def _compile(directory: Path | None, kernels: Sequence[Kernel], threads: int) -> None:
    from tracejit.jit.lowering import native

    progress.count("wanted", len(kernels))
    objects = native.compile_kernels(kernels, threads, progress.count)
    symbols = [native.symbol_of(kernel.digest) for kernel in kernels]
    _addresses.update(zip((_known(k.digest) for k in kernels), loader.load(objects, symbols)))
    counts["compiled"] += len(kernels)
    _compiled.update(_known(k.digest) for k in kernels)
    logs.emit("kernels", f"compiled {', '.join(k.name for k in kernels)}")
    if directory is not None:
        keep(directory, kernels, objects)


def keep(directory: Path, kernels: Sequence[Kernel], objects: Sequence[bytes]) -> None:
    """Write kernels to disk. Where that fails, a warning says so."""
    if cache_folder.writable(directory):
        try:
            write_pack(directory, [kernel.digest for kernel in kernels], objects,
                       [kernel.name for kernel in kernels], function_at_work())
        except OSError as error:
            _not_written(directory, error)
        for kernel in kernels:
            source_file(kernel)


# Errors of one place only, such as a folder where a file belongs: other files may be written.
_LOCAL = {errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST, errno.ENAMETOOLONG}
_LOCAL |= {errno.ENOENT}


def _not_written(directory: Path, error: OSError) -> None:
    if error.errno in _LOCAL:
        where = error.filename2 or error.filename
        cache_folder.warn("damaged", f"tracejit cannot write {where} ({error.strerror})")
    else:
        cache_folder.stop_writing(directory, error)


def source_file(kernel: Kernel) -> str:
    """Return the path of the file with the kernel's text, written once; a name in <> without a
    disk."""
    nowhere, text = f"<kernel {kernel.name}>", kernel.source.encode()
    folder = subfolder("kernels")
    if folder is None:
        return nowhere
    # Not the kernel's digest: two texts that differ in comments (the user's lines) have the same.
    path = folder / f"{kernel.name}_{hashlib.sha256(text).hexdigest()[:16]}.py"
    try:
        try:
            if cache_folder.read_file(path) == text:
                return str(path)
            raise ValueError("its checksum differs")
        except ValueError as error:
            again = "it is written again"
            cache_folder.warn("damaged", f"{path} is damaged ({error}); {again}")
        except FileNotFoundError:
            pass
        if not cache_folder.writable(folder):
            return nowhere
        cache_folder.write_file(path, text)
    except OSError as error:
        _not_written(folder, error)
        return nowhere
    return str(path)


def native_directory() -> Path | None:
    """Return the folder for objects of this target and these versions; None where it cannot be
    used."""
    return subfolder(f"native-{environment_key()}")


def environment_key(target: str = "") -> str:
    """Return a digest of everything that decides what a kernel compiles to, except its text.

    Raises `lowering.target.TargetError` where this processor cannot run code for the target.
    """
    return _key_of(target or flags.target)


@functools.cache
def _key_of(target: str) -> str:
    import llvmlite
    import llvmlite.binding as llvm
    import numpy

    from tracejit.jit.lowering import abi
    from tracejit.jit.lowering.target import processor

    total = hashlib.sha256()
    versions = (MAGIC.decode(), abi.VERSION, llvmlite.__version__, numpy.__version__)
    for part in (*versions, llvm.get_process_triple(), *processor(target)):
        total.update(f"{part}\n".encode())
    spec = importlib.util.find_spec("numba")
    origin = Path(spec.origin).parent / "_version.py" if spec and spec.origin else Path("absent")
    if os.path.exists(origin):
        total.update(origin.read_bytes())
    for path in sorted(Path(abi.__file__).parent.glob("*.py")):
        total.update(path.read_bytes())
    return total.hexdigest()[:16]
