"""Memory behind tensors; PyTorch's `torch.storage`.

In: tensors. Out: their storages. Pickles hold a storage as PyTorch's do: as a file of its own, read
by a function that unpicklers may replace, e.g. to bring all storages to another device.
"""

import copyreg
import io
from typing import Any

from tracejit.core.eager.array_storage import ArrayStorage
from tracejit.core.eager.interchange import storage_of_bytes
from tracejit.core.eager.typed_storage import TypedStorage, typed
from tracejit.core.eager.untyped_storage import UntypedStorage
from tracejit.core.memory import Storage, allocate
from tracejit.core.ops.types import dtype_named

__all__ = ["TypedStorage", "UntypedStorage"]


def _load_from_bytes(b: bytes) -> Any:
    """Return what a file holds: a storage, where a pickle calls it.

    Only Python's `pickle` and `load(weights_only=False)` know this name; both trust the pickle.
    """
    import tracejit

    return tracejit.load(io.BytesIO(b), weights_only=False)


class _File:
    """Storage on the CPU, pickled as a file in PyTorch's older format."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def __reduce__(self) -> tuple:
        from tracejit.saving import legacy_writing

        file = io.BytesIO()
        legacy_writing.write(file, typed(self.storage, dtype_named("uint8")), 2)
        return _load_from_bytes, (file.getvalue(),)


def _memory_of(found: TypedStorage) -> Storage:
    return found.untyped()._storage


def reduced_for_processes(storage: Storage) -> tuple:
    """Return how to make a storage again, by its bytes alone. That is faster than by a file, and
    nobody but another process reads it."""
    kind = storage.device.type
    if kind == "meta":
        return allocate, (storage.nbytes, storage.device)
    block = storage.block[: storage.nbytes]
    data = (block if kind == "cpu" else block.get()).tobytes()
    return storage_of_bytes, (data, storage.device)


def _reduced(storage: Storage) -> tuple:
    """Return how to make a storage again. Files of the older format are for the CPU's alone."""
    if storage.device.type == "cpu":
        return _memory_of, (_File(storage),)
    return reduced_for_processes(storage)


copyreg.pickle(Storage, _reduced)
copyreg.pickle(ArrayStorage, _reduced)
