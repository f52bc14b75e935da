"""Storage: a span of bytes with a version, shared by every view of it.

In: blocks from the allocator, or arrays that NumPy or a caller made. Out: an address, a uint8 block
to view, and a version that every write advances. Tensors hold Storages. `.numpy()`, DLPack and
memoryviews hold the block, so a block goes back to the allocator only when its Storage is gone and
nobody else refers to it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tracejit.core.memory.devices import CPU, device


class _Readonly:
    """Count of read-only Storages made. Each new one may make earlier findings untrue."""

    count = 0


readonly = _Readonly()


class Released:
    """Block of a Storage whose memory was given back, while tensors still look at it."""

    text = ("the tensor has elements, but its storage has no memory: resize_() of the storage gave "
            "it back, and has to be called again")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(self.text)

    def __getitem__(self, key: Any) -> Any:
        raise RuntimeError(self.text)


RELEASED = Released()


class Storage:
    """Memory of `nbytes` bytes at address `ptr`; `block` is a one-dimensional uint8 array over
    them.

    version   advanced by every write, compared by autograd and by captured programs
    readonly  the caller's array may not be written
    home      the bucket of the pool that the block returns to; None: the block is not from the
    pool
    """

    __slots__ = ("block", "nbytes", "version", "device", "home", "_ptr", "__weakref__")

    def __init__(self, block: Any, nbytes: int, device: device = CPU, ptr: int | None = None,
                 home: Any = None):
        self.block = block
        self.nbytes = nbytes
        self.version = 0
        self.device = device
        self._ptr = ptr
        self.home = home  # last: what has one is whole, and goes back to it

    @property
    def ptr(self) -> int:
        if self._ptr is None:
            self._ptr = address(self.block)
        return self._ptr

    @property
    def readonly(self) -> bool:
        return self.device.type == "cpu" and not self.block.flags.writeable

    def take(self, other: Storage | None) -> None:
        """Be the memory of `other`, a Storage that nobody else has; None: have no memory, and raise
        RuntimeError where it is asked for."""
        self.__del__()  # what was there goes back to its pool, if nobody else refers to it
        self.home = None
        if other is None:
            self.block, self.nbytes, self._ptr = RELEASED, 0, None
            return
        self.block, self.nbytes, self._ptr = other.block, other.nbytes, other._ptr
        self.home, other.home = other.home, None

    def __repr__(self) -> str:
        if self.block is RELEASED:
            return f"Storage(released, version {self.version}, {self.device})"
        where = f"{self.nbytes} bytes at {self.ptr:#x}"
        return f"Storage({where}, version {self.version}, {self.device})"

    # The default argument still works when the interpreter has emptied this module at exit.
    def __del__(self, references: Any = sys.getrefcount) -> None:
        try:
            home = self.home
        except AttributeError:
            return  # Ctrl-C arrived while it was being made
        if home is not None:
            home.take_back(self.block, self._ptr, references(self.block))


def address(block: Any) -> int:
    """Address of the first byte of a NumPy or CuPy array."""
    if isinstance(block, np.ndarray):
        return int(block.__array_interface__["data"][0])
    return int(block.data.ptr)


class _Span:
    """Bytes at an address, kept alive by `owner`; NumPy makes an array over them without a copy."""

    def __init__(self, owner: Any, ptr: int, nbytes: int, readonly: bool):
        self.owner = owner
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (nbytes,), "data": (ptr, readonly),
        }  # fmt: skip


def storage_of_array(array: Any, where: device = CPU) -> Storage:
    """Return the Storage over an existing array's memory, without a copy. It keeps the array alive.

    Covers exactly the bytes the array reaches, for any strides (negative ones too). The first
    element lies at `(address(array) - storage.ptr) // itemsize`. A read-only array gives a Storage
    whose `readonly` is True. For `where` on CUDA, a C-contiguous CuPy array.

    >>> import numpy as np
    >>> x = np.arange(6, dtype=np.float32)
    >>> storage_of_array(x[::2]).nbytes
    20
    """
    if where.type == "cpu" and not array.flags.writeable:
        readonly.count += 1
    if array.flags.c_contiguous:
        block = array.reshape(-1).view("uint8")
        return Storage(block, block.nbytes, where)
    if where.type != "cpu":
        raise ValueError("storage_of_array: expected a C-contiguous array on a CUDA device")
    low, high = np.lib.array_utils.byte_bounds(array)
    span = _Span(array, int(low), int(high - low), not array.flags.writeable)
    return Storage(np.asarray(span), int(high - low), where, int(low))
