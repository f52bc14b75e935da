"""Storages of another size: their memory is replaced under the tensors that look at it.

In: a Storage and a number of bytes. Out: the same Storage over other memory, with as much of the
content as fits. Called by `resize_` and `set_` of tensors, and by `resize_` of storages, with which
programs release the memory of tensors for a while.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.state import TensorState, strides_of
from tracejit.core.memory import Storage, allocate
from tracejit.core.memory.readers import about_to_write, shown
from tracejit.core.memory.referrers import referrers
from tracejit.core.memory.storage import RELEASED


def is_resizable(storage: Storage) -> bool:
    """Return True if no array and no other library looks at the memory."""
    return storage not in shown and (storage.block is RELEASED or not storage.readonly)


def resize(storage: Storage, nbytes: int) -> None:
    """Give a Storage `nbytes` bytes; new ones are zeros.

    Raises RuntimeError if arrays look at the memory, and for sizes between 0 and what tensors over
    it need. After `resize(storage, 0)` their elements cannot be read until it is resized again.
    """
    if not is_resizable(storage):
        raise RuntimeError("Trying to resize storage that is not resizable")
    over = [x for x in referrers([storage])
            if isinstance(x, TensorState) and x._storage is storage]
    needed = max(map(extent, over), default=0)
    if 0 < nbytes < needed:
        raise RuntimeError(f"a tensor reaches {needed} bytes into the storage, which cannot be "
                           f"resized to {nbytes}")
    about_to_write(storage)
    for x in over:
        x._array = None
    if needed and not nbytes:
        storage.take(None)
        return
    made, kept = allocate(nbytes, storage.device), min(nbytes, storage.nbytes)
    if kept:
        made.block[:kept] = storage.block[:kept]
    made.block[kept:nbytes] = 0
    storage.take(made)


def extent(x: Any) -> int:
    """Return how many bytes of its storage a tensor reaches; 0 if it has no elements."""
    return extent_of(x._offset, x._shape, strides_of(x)) * x._dtype.itemsize


def extent_of(offset: int, shape: tuple, strides: tuple) -> int:
    """Return the extent of a layout, in elements."""
    if 0 in shape:
        return 0
    return int(offset + sum((n - 1) * s for n, s in zip(shape, strides)) + 1)
