"""Records of a saved file, one by one, for PyTorch's programs that load large files lazily.

In: the path of a file that `tracejit.save` or `torch.save` wrote, or the file. Out: its records'
names and bytes, and storages of them. Nothing is unpickled.
"""

from __future__ import annotations

import os
from typing import Any

from tracejit.core.eager.state import make
from tracejit.core.memory import CPU
from tracejit.core.ops.types import dtype as ElementType
from tracejit.core.ops.types import uint8
from tracejit.saving.archive import Archive


class PyTorchFileReader:
    """Records of a file; RuntimeError where it is no whole archive, or lacks a record.

    >>> import io, tracejit
    >>> file = io.BytesIO()
    >>> tracejit.save({"a": tracejit.ones(3)}, file)
    >>> reader = tracejit.PyTorchFileReader(file)
    >>> reader.has_record("data.pkl"), reader.get_record_size("data/0")
    (True, 12)
    """

    def __init__(self, name_or_buffer: Any) -> None:
        path = isinstance(name_or_buffer, (str, os.PathLike))
        self._opened = open(name_or_buffer, "rb") if path else None
        self._archive = Archive(self._opened or name_or_buffer)

    def __del__(self) -> None:
        opened = getattr(self, "_opened", None)
        if opened is not None:
            opened.close()

    def get_all_records(self) -> list[str]:
        """Return the names, in the order of the file."""
        return [name.partition("/")[2] for name in self._archive.zip.namelist()]

    def has_record(self, name: str) -> bool:
        """Return True if the file has a record of this name."""
        return self._archive.has(name)

    def get_record(self, name: str) -> bytes:
        """Return a record's bytes."""
        return self._archive.read(name)

    def get_record_size(self, name: str) -> int:
        """Return the number of bytes of a record."""
        return self._archive.size(name)

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Any:
        """Return an empty tensor over a storage of `numel` elements; bytes where `dtype` is a class
        of storages."""
        kind = dtype if isinstance(dtype, ElementType) else uint8
        storage = self._archive.storage(name, numel * kind.itemsize, kind)
        return make(storage, 0, (0,), None, kind, CPU)

