"""Files of PyTorch before 1.6: pickles one after the other, then the elements of each storage.

In: a file that stands at the first pickle. Out: the object. Elements come last, so tensors are made
over storages that are filled afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

import numpy as np

from tracejit.core.eager.typed_storage import TypedStorage, typed
from tracejit.core.memory import Storage, allocate
from tracejit.saving.names import StorageType
from tracejit.saving.rebuilding import refuse
from tracejit.saving.unpickling import Reader, Unpickler

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001


class _Legacy:
    """Storages of one file, by key."""

    def __init__(self, left: Callable[[], int], place: Callable[[Storage, str], Storage]) -> None:
        self.left, self.place = left, place
        self.made: dict[str, tuple[Storage, StorageType, str]] = {}
        self.placed: dict[str, TypedStorage] = {}

    def reference(self, given: Any) -> TypedStorage:
        refuse(not isinstance(given, tuple) or len(given) != 6 or given[0] != "storage"
               or type(given[1]) is not StorageType or type(given[2]) is not str
               or type(given[3]) is not str or type(given[4]) is not int,
               "a storage is not described as it should be")
        _, cls, key, location, count, view = given
        refuse(view is not None, "a view of a storage is not supported")
        if key not in self.made:
            nbytes = count * cls.kind.itemsize
            # Before anything is allocated: the file may claim any size.
            refuse(not 0 <= nbytes <= self.left(), "a storage is larger than the file")
            storage = allocate(nbytes)
            storage.block[:nbytes] = 0
            self.made[key] = storage, cls, location
            placed = self.place(storage, location)
            self.placed[key] = typed(placed, cls.kind)
            refuse(placed is not storage and storage.device != placed.device,
                   "files of this format can be loaded to the CPU only")
        refuse(self.made[key][1] is not cls, "a storage has two types")
        return self.placed[key]


def load(reader: Reader, place: Callable[[Storage, str], Storage],
         allowed: dict[str, Any], encoding: str) -> Any:
    """Return the object in a file of the old format.

    Raises UnpicklingError for a damaged file, or one of another format.
    """

    def none(given: Any) -> Any:
        raise UnpicklingError("a storage where none may be")

    def plain() -> Any:
        return Unpickler(reader, none, allowed).load()

    refuse(plain() != MAGIC, "Invalid magic number; corrupt file?")
    version, system = plain(), plain()
    refuse(version != PROTOCOL, f"Invalid protocol version: {version!r:.80}")
    refuse(not isinstance(system, dict), "the file does not say how it was made")
    # Tensors lie over these storages already; their elements follow below.
    storages = _Legacy(lambda: reader.left, place)
    found = Unpickler(reader, storages.reference, allowed, encoding).load()
    keys = plain()
    refuse(not isinstance(keys, list) or set(map(repr, keys)) != set(map(repr, storages.made)),
           "the storages are not those of the tensors")
    swapped = (sys.byteorder == "little") != bool(system.get("little_endian", True))
    for key in keys:
        storage, cls, _ = storages.made[key]
        count = int.from_bytes(reader.take(8), "big" if swapped else "little")
        refuse(count * cls.kind.itemsize != storage.nbytes, f"storage {key!r:.80} has another size")
        data = np.frombuffer(reader.take(storage.nbytes), cls.kind.numpy)
        storage.block[: storage.nbytes] = (data.byteswap() if swapped else data).view(np.uint8)
    return found
