"""Writing files of PyTorch before 1.6, which `legacy` reads.

In: an object and a file open for writing. Out: in the file, pickles one after the other and the
elements of each storage.
"""

from __future__ import annotations

import io
import pickle
import sys
from typing import Any

from tracejit.saving.legacy import MAGIC, PROTOCOL
from tracejit.saving.pickling import Pickler

_SYSTEM = {
    "protocol_version": PROTOCOL,
    "little_endian": sys.byteorder == "little",
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}


class _Pickler(Pickler):
    """Pickler whose references to storages have a part more: None, as a storage is no view of
    another."""

    def persistent_id(self, obj: Any) -> Any:
        found = super().persistent_id(obj)
        return None if found is None else (*found, None)


def write(file: Any, obj: Any, protocol: int) -> None:
    """Write an object as `torch.save(..., _use_new_zipfile_serialization=False)` does."""
    # The object is pickled first: the keys of its storages are known only then.
    body = io.BytesIO()
    pickler = _Pickler(body, protocol)
    pickler.dump(obj)
    for what in (MAGIC, PROTOCOL, _SYSTEM):
        pickle.dump(what, file, protocol)
    file.write(body.getvalue())
    pickle.dump([str(number) for number in range(len(pickler.storages))], file, protocol)
    for storage, kind in zip(pickler.storages, pickler.kinds()):
        block = storage.block[: storage.nbytes]
        file.write((storage.nbytes // kind.itemsize).to_bytes(8, sys.byteorder))
        file.write(memoryview(block if storage.device.type == "cpu" else block.get()))
