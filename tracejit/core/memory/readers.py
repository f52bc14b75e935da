"""Readers: objects that still need memory as it is, and are told before a write.

In: readers, which are told of each write to come, and memory that NumPy or others may write when
they like. Out: the earlier content of memory. Captured calls read so: their backwards recompute the
values that the plain function keeps.
"""

from __future__ import annotations

import io
import weakref
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tracejit.core.memory.allocator import allocate
from tracejit.core.memory.storage import Storage

live: set[weakref.ref] = set()
forget = live.discard  # those that are gone


class Shown:
    """Memory that others may write.

    count  how often any was shown: what was found of other memory holds as long as it stays
    """

    def __init__(self) -> None:
        self.places: set[weakref.ref[Storage]] = set()
        self.count = 0

    def add(self, storage: Storage) -> None:
        self.count += 1
        self.places.add(weakref.ref(storage, self.places.discard))

    def __contains__(self, storage: Storage) -> bool:
        return weakref.ref(storage) in self.places


shown = Shown()


class Before:
    """Content of memory at this moment: a copy, made for the first reader who wants it."""

    def __init__(self, storage: Storage):
        self.storage = storage
        self.made: Storage | None = None

    def copy(self) -> Storage:
        if self.made is None:
            self.made = copied(self.storage)
        return self.made


def reads(reader: Any) -> weakref.ref:
    """`reader.about_to_write(storage, before)` is called before writes, as long as it lives, which
    the weak reference tells, or until `reads_no_more`. (`native_history` does the same.)"""
    found = weakref.ref(reader, forget)
    live.add(found)
    return found


def reads_no_more(reader: Any) -> None:
    """Stop telling a reader of writes."""
    live.discard(weakref.ref(reader))


def about_to_write(storage: Storage) -> None:
    """Tell all readers."""
    if live:
        before = Before(storage)
        for reader in [at() for at in list(live)]:
            if reader is not None:
                reader.about_to_write(storage, before)


def show(storage: Storage) -> None:
    """Others can write this memory from now on, and tell nobody."""
    about_to_write(storage)
    shown.add(storage)


def shown_in(buffer: Any) -> list[Storage]:
    """Return the memory of tensors that a NumPy array, or another object with a buffer, can write.

    An iterator may give any array, so for it this is all memory that is shown.
    """
    found = [storage for at in list(shown.places) if (storage := at()) is not None]
    if not found or _is_iterator(type(buffer)):
        return found
    try:
        array = buffer if issubclass(type(buffer), np.ndarray) else np.asarray(memoryview(buffer))
    except (TypeError, ValueError):  # it has none
        return []
    start, end = byte_bounds(array) if array.size else (0, 0)
    return [storage for storage in found if storage.device.type == "cpu"
            and storage.ptr < end and start < storage.ptr + storage.nbytes]


def _is_iterator(cls: type) -> bool:
    """Return True if instances have `__next__`, which may give an array: a file's gives lines.
    Neither they nor a metaclass are asked."""
    mro, names = vars(type)["__mro__"], vars(type)["__dict__"]
    found = next((base for base in mro.__get__(cls) if "__next__" in names.__get__(base)), None)
    return found is not None and not any(found is cls for cls in _FILES)  # `in` would hash it


_FILES = (vars(type)["__mro__"].__get__(io.IOBase)[1], io.BufferedReader, io.BytesIO, io.StringIO,
          io.TextIOWrapper)  # fmt: skip


def copied(storage: Storage) -> Storage:
    """Return a Storage of its own with the same bytes."""
    made = allocate(storage.nbytes, storage.device)
    if storage.device.type != "meta":
        made.block[: storage.nbytes] = storage.block[: storage.nbytes]
    return made
