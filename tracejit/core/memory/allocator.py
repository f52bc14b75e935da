"""Allocator: blocks of bytes, recycled when their last user is gone.

In: sizes. Out: Storages on 64-byte boundaries, with unspecified content. Called by eager ops, the
runtime and serialization. Fresh pages of a large output cost as much as several kernels, so freed
blocks wait in buckets, one per size class, up to a limit. Past the limit the allocator empties the
least recently used buckets first.

No locks: `__del__` may run inside any allocation, in any thread. Everything here is a list append
or pop, or an addition to an int, which CPython does not interleave with other threads. Ctrl-C may
arrive after any call of a C function: counts change before such a call, so that a block it loses
was given up already.
"""

from __future__ import annotations

import mmap
import os
from typing import Any, NamedTuple

import numpy as np

from tracejit.core.memory.devices import CPU, array_module, device
from tracejit.core.memory.limits import refusal
from tracejit.core.memory.storage import Storage, address

ALIGNMENT = 64
_MAPPED = 1 << 18  # blocks from here on are mapped, and given back to the system when dropped
_HUGE = 1 << 22


class Statistics(NamedTuple):
    """Bytes: in live Storages, the most there ever were, and waiting in the pool or live."""

    allocated: int
    peak: int
    reserved: int


class _Counts:
    __slots__ = ("live", "peak", "cached", "clock", "limit")

    def __init__(self, limit: int):
        self.live = self.peak = self.cached = self.clock = 0
        self.limit = limit


def memory_limit() -> int:
    """Return the bytes that this process may use: the machine's memory, or a cgroup's smaller
    limit."""
    try:
        found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (ValueError, OSError, AttributeError):
        found = [1 << 32]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path) as file:
                found.append(int(file.read()))
        except (OSError, ValueError):
            continue  # no such cgroup version here, or "max"
    return min(found)


_counts = _Counts(memory_limit() // 4)


_new = object.__new__


class Bucket:
    """Free blocks of one size class."""

    __slots__ = ("size", "free", "used")

    def __init__(self, size: int):
        self.size = size
        self.free: list[tuple[np.ndarray, int]] = []
        self.used = 0

    def take(self, nbytes: int) -> Storage:
        """Return a Storage of `nbytes`, at most this bucket's size."""
        counts = _counts
        size = self.size
        counts.cached -= size
        try:
            block, ptr = self.free.pop()
        except IndexError:
            counts.cached += size
            block, ptr = _fresh(size)
        storage = _new(Storage)  # `__init__` would cost as much as all of this
        counts.live = live = counts.live + size
        if live > counts.peak:
            counts.peak = live
        storage.block, storage.nbytes, storage.version = block, nbytes, 0
        storage.device, storage.home, storage._ptr = CPU, self, ptr
        return storage

    def take_back(self, block: np.ndarray, ptr: int, references: int) -> None:
        """Keep the block of a dying Storage for another one, if nobody else refers to it."""
        counts = _counts
        if counts is None:
            return  # the interpreter is exiting
        counts.live -= self.size
        if references == _ALONE:
            counts.cached += self.size
            counts.clock += 1
            self.used = counts.clock
            self.free.append((block, ptr))
            if counts.cached > counts.limit:
                _trim(counts.limit - counts.limit // 8)


class _Probe:
    """Stand-in for a bucket: it only notes how many references `Storage.__del__` counts."""

    references = 0

    def take_back(self, block: Any, ptr: Any, references: int) -> None:
        _Probe.references = references


def _references_when_alone() -> int:
    """Return the count in `Storage.__del__` if only the dying Storage refers to the block."""
    Storage(np.empty(1, np.uint8), 1, ptr=0, home=_Probe())
    return _Probe.references


_ALONE = _references_when_alone()
_buckets: dict[int, Bucket] = {}


def size_class(nbytes: int) -> int:
    """`nbytes` rounded up: to 64 bytes when small, else to an eighth of a power of two.

    >>> size_class(1), size_class(100), size_class(5000)
    (64, 128, 5120)
    """
    if nbytes <= 1024:
        return (nbytes + 63) & -64 or ALIGNMENT
    shift = (nbytes - 1).bit_length() - 4
    return -(-nbytes >> shift) << shift


def allocate(nbytes: int, where: device = CPU) -> Storage:
    """Return a Storage of at least `nbytes` bytes of unspecified content on a 64-byte boundary.

    Raises OutOfMemory, saying how much was asked for, when there is not so much.

    >>> allocate(100).ptr % 64
    0
    """
    if where is not CPU and where.type != "cpu":
        return (_reserve if where.type == "meta" else _allocate_cuda)(nbytes, where)
    return bucket_for(nbytes).take(nbytes)


_exact: dict[int, Bucket] = {}  # bytes asked for -> bucket: the same few sizes come again and again


def bucket_for(nbytes: int) -> Bucket:
    """Return the bucket whose blocks serve requests of `nbytes`. For callers that ask again and
    again."""
    found = _exact.get(nbytes)
    if found is not None:
        return found
    if nbytes < 0:
        raise ValueError(f"allocate: expected a size >= 0, got {nbytes}")
    size = size_class(nbytes)
    bucket = _buckets.setdefault(size, Bucket(size))
    if len(_exact) >= 4096:
        _exact.clear()
    _exact[nbytes] = bucket
    return bucket


def _fresh(size: int) -> tuple[np.ndarray, int]:
    """Make a new block. Where memory is short, give back the free ones first."""
    try:
        return _made(size)
    except (MemoryError, OSError, OverflowError):
        empty_cache()
    try:
        return _made(size)
    except (MemoryError, OSError, OverflowError) as error:
        raise refusal(size) from error


def _made(size: int) -> tuple[np.ndarray, int]:
    """Make a new block. Its base is no ndarray, so views of views of it have this very block as
    base."""
    if size >= _MAPPED and hasattr(mmap, "MAP_PRIVATE"):
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if size >= _HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
            _advise(pages)
        block = np.ndarray(size, np.uint8, buffer=pages)
        return block, address(block)
    raw = bytearray(size + ALIGNMENT - 1)
    skip = -address(np.ndarray(1, np.uint8, buffer=raw)) % ALIGNMENT
    block = np.ndarray(size, np.uint8, buffer=raw, offset=skip)
    return block, address(block)


def _advise(pages: mmap.mmap) -> None:
    try:
        pages.madvise(mmap.MADV_HUGEPAGE)
    except OSError:
        return  # a kernel without huge pages: ordinary ones do


def _allocate_cuda(nbytes: int, where: device) -> Storage:
    cupy = array_module(where)
    with cupy.cuda.Device(where.index or 0):
        return Storage(cupy.empty(max(nbytes, 1), cupy.uint8), nbytes, where)


def _reserve(nbytes: int, where: device) -> Storage:
    """Addresses that no memory stands behind: those of tensors without values."""
    size = max(nbytes, 1)
    if hasattr(mmap, "MAP_PRIVATE"):  # what nobody may write takes no memory, however long it is
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        pages = mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ)
    else:
        pages = mmap.mmap(-1, size, access=mmap.ACCESS_READ)
    return Storage(np.ndarray(size, np.uint8, buffer=pages), nbytes, where)


def _trim(target: int) -> None:
    """Drop free blocks until the pool holds `target` bytes, longest unused buckets first."""
    for bucket in sorted(_buckets.values(), key=lambda b: b.used):
        while bucket.free and _counts.cached > target:
            _counts.cached -= bucket.size
            try:
                bucket.free.pop(0)
            except IndexError:
                _counts.cached += bucket.size
                break  # another thread took it
        if _counts.cached <= target:
            return


def empty_cache() -> None:
    """Give every free block back to the system.

    >>> del_me = allocate(1 << 20); del del_me
    >>> empty_cache()
    >>> stats().reserved == stats().allocated
    True
    """
    _trim(0)


def set_cache_limit(nbytes: int) -> None:
    """Let free blocks take at most `nbytes` (default: a quarter of the memory there is)."""
    _counts.limit = max(0, int(nbytes))
    _trim(_counts.limit)


def stats() -> Statistics:
    """Bytes in live Storages, their peak, and live plus waiting in the pool."""
    return Statistics(_counts.live, _counts.peak, _counts.live + _counts.cached)


def reset_peak() -> None:
    """Let `stats().peak` start again from what is live now."""
    _counts.peak = _counts.live
