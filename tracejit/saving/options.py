"""Options of the process for reading and writing files, where neither the file nor the call says.

In: settings from `tracejit.serialization`. Out: answers to `archive`.
"""

from __future__ import annotations

import mmap
import sys
import threading
from enum import Enum


class LoadEndianness(Enum):
    """Byte order."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Skipping(threading.local):
    on = False


_endianness: LoadEndianness | None = None
_mmap_flags = getattr(mmap, "MAP_PRIVATE", None)
_compute_crc32 = True
_skipping = _Skipping()


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order of files that do not record theirs; None: this machine's.

    >>> set_default_load_endianness(LoadEndianness.BIG)
    >>> get_default_load_endianness()
    <LoadEndianness.BIG: 3>
    >>> set_default_load_endianness(None)
    """
    global _endianness
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness: expected "
                        f"a LoadEndianness or None, got {type(endianness).__name__}")
    _endianness = endianness


def get_default_load_endianness() -> LoadEndianness | None:
    """Return the byte order of files that do not record theirs; None where none was set."""
    return _endianness


def assumed_byteorder() -> str:
    """Return `sys.byteorder` of the machine that wrote a file which does not say."""
    if _endianness in (None, LoadEndianness.NATIVE):
        return sys.byteorder
    return "big" if _endianness is LoadEndianness.BIG else "little"


class set_default_mmap_options:
    """Set how `load(..., mmap=True)` maps files, for good or in a `with` block.

    flags  mmap.MAP_PRIVATE, where writes to the tensors stay in memory, or mmap.MAP_SHARED, where
           they go to the file
    """

    def __init__(self, flags: int) -> None:
        global _mmap_flags
        known = [getattr(mmap, name, None) for name in ("MAP_PRIVATE", "MAP_SHARED")]
        if flags is None or flags not in known:
            raise ValueError("Invalid argument in function set_default_mmap_options, expected "
                             f"mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}")
        self.prev = _mmap_flags
        _mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        global _mmap_flags
        _mmap_flags = self.prev


def get_default_mmap_options() -> int | None:
    """Return the flags with which `load(..., mmap=True)` maps files."""
    return _mmap_flags


def maps_shared() -> bool:
    """Return True if writes to mapped elements go to the file."""
    return _mmap_flags is not None and _mmap_flags == getattr(mmap, "MAP_SHARED", None)


def set_crc32_options(compute_crc32: bool) -> None:
    """Set whether saved files should hold checksums; they do all the same: `load` checks them."""
    global _compute_crc32
    _compute_crc32 = compute_crc32


def get_crc32_options() -> bool:
    """Return the value that `set_crc32_options` set."""
    return _compute_crc32


class skip_data:
    """Context in which `save` and `load` leave the elements out: they are zeros.

    >>> import io, tracejit
    >>> file = io.BytesIO()
    >>> with skip_data():
    ...     tracejit.save(tracejit.ones(2), file)
    >>> tracejit.load(io.BytesIO(file.getvalue()))
    tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._before = _skipping.on
        _skipping.on = True

    def __exit__(self, *exc: object) -> None:
        _skipping.on = self._before


def skipping() -> bool:
    """Return True if a block of `skip_data` is open in this thread."""
    return _skipping.on
