"""Container of a saved file: a zip archive whose entries are not compressed.

In: a pickle and its storages, or a file. Out: the file, as PyTorch writes it: the elements of each
storage begin on a 64-byte boundary, so that they can be mapped. Reading checks sizes against the
file's and every checksum; RuntimeError for a damaged file.
"""

from __future__ import annotations

import io
import mmap
import os
import struct
import sys
import zipfile
from collections.abc import Iterable
from typing import Any

import numpy as np

from tracejit.core.memory import CPU, Storage, allocate, storage_of_array
from tracejit.core.ops.types import dtype
from tracejit.saving import foreign
from tracejit.saving.options import assumed_byteorder, maps_shared, skipping

_ALIGNMENT = 64
_CHUNK = 1 << 24
_MAGIC = b"PK\x03\x04"


def write(file: Any, root: str, pickle: bytes, storages: Iterable[Storage]) -> None:
    """Write an archive to a file that is open for writing."""
    target = file if _seekable(file) else io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        _entry(archive, f"{root}/data.pkl", memoryview(pickle))
        _entry(archive, f"{root}/.format_version", memoryview(b"1"))
        _entry(archive, f"{root}/.storage_alignment", memoryview(b"64"))
        _entry(archive, f"{root}/byteorder", memoryview(sys.byteorder.encode()))
        for number, storage in enumerate(storages):
            block = storage.block[: storage.nbytes]
            array = block if storage.device.type == "cpu" else block.get()
            if skipping():
                array = np.zeros_like(array)
            _entry(archive, f"{root}/data/{number}", memoryview(array))
        _entry(archive, f"{root}/version", memoryview(b"3\n"))
    if target is not file:
        file.write(target.getvalue())


def _seekable(file: Any) -> bool:
    try:
        return bool(file.seekable())
    except AttributeError:
        return False


def _entry(archive: zipfile.ZipFile, name: str, data: memoryview) -> None:
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.file_size = data.nbytes
    wide = data.nbytes * 1.05 > zipfile.ZIP64_LIMIT
    assert archive.fp is not None
    # Local header: 30 bytes, the name, the extra field (4 bytes of head), sizes of 64 bits.
    start = archive.fp.tell() + 30 + len(name.encode()) + 4 + (20 if wide else 0)
    padding = -start % _ALIGNMENT
    entry.extra = struct.pack("<HH", 0x4246, padding) + b"Z" * padding
    with archive.open(entry, "w", force_zip64=wide) as file:
        for at in range(0, data.nbytes, _CHUNK):
            file.write(data[at : at + _CHUNK])


def is_archive(file: Any) -> bool:
    """Return True if an archive begins where the file stands."""
    start = file.tell()
    head = file.read(len(_MAGIC))
    file.seek(start)
    return head == _MAGIC


class _Sought:
    """File-like object that can seek and does not say so."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def seekable(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class Archive:
    """Archive that is read from; a context manager. RuntimeError for a damaged one."""

    def __init__(self, file: Any) -> None:
        self.file = file
        try:
            self.zip = zipfile.ZipFile(file if hasattr(file, "seekable") else _Sought(file))
            entries = self.zip.infolist()
        except Exception as error:
            raise damaged(error) from error
        if not entries:
            raise damaged("it is empty")
        found = foreign.of_archive(entry.filename for entry in entries)
        if found:
            raise RuntimeError(found)
        if any(e.compress_type or e.compress_size != e.file_size for e in entries):
            raise damaged("its entries are compressed")
        file.seek(0, os.SEEK_END)
        # Entries that lie over one another could make any amount of data of a small file.
        if sum(entry.file_size for entry in entries) > file.tell():
            raise damaged("its entries are larger than the file")
        self.root = entries[0].filename.split("/")[0]
        self.names = {entry.filename for entry in entries}
        order = (self.read("byteorder").decode("latin1") if self.has("byteorder")
                 else assumed_byteorder())
        if order not in ("little", "big"):
            raise damaged(f"unknown byte order {order!r:.20}")
        self.swapped = order != sys.byteorder

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *exc: object) -> None:
        self.zip.close()

    def has(self, name: str) -> bool:
        return f"{self.root}/{name}" in self.names

    def _info(self, name: str) -> zipfile.ZipInfo:
        if not self.has(name):
            raise damaged(f"it has no entry {name!r:.80}")
        return self.zip.getinfo(f"{self.root}/{name}")

    def size(self, name: str) -> int:
        """Return the number of bytes of an entry."""
        return self._info(name).file_size

    def read(self, name: str) -> bytes:
        """Return an entry's bytes."""
        try:
            return self.zip.read(self._info(name))
        except RuntimeError:
            raise
        except Exception as error:
            raise damaged(error) from error

    def storage(self, name: str, nbytes: int, kind: dtype) -> Storage:
        """Return a storage of the bytes of an entry, which must be as many as the pickle says."""
        info = self._sized(name, nbytes)
        made = allocate(nbytes)
        if skipping():
            made.block[:nbytes] = 0
            return made
        view = memoryview(made.block)
        try:
            source: Any
            with self.zip.open(info) as source:
                for at in range(0, nbytes, _CHUNK):
                    end = min(at + _CHUNK, nbytes)
                    if source.readinto(view[at:end]) != end - at:
                        raise damaged(f"entry {name!r} is too short")
                source.read(1)  # the checksum is compared at the end
        except RuntimeError:
            raise
        except Exception as error:
            raise damaged(error) from error
        if self.swapped:
            made.block[:nbytes].view(kind.numpy).byteswap(inplace=True)
        return made

    def mapped(self, name: str, nbytes: int) -> Storage:
        """Return a storage over the file's own pages, which are read when they are used. Writes
        stay private unless `set_default_mmap_options` said otherwise."""
        info = self._sized(name, nbytes)
        self.file.seek(info.header_offset + 26)
        lengths = self.file.read(4)
        if len(lengths) != 4:
            raise damaged("an entry's header is missing")
        start = info.header_offset + 30 + sum(struct.unpack("<HH", lengths))
        if start + nbytes > os.fstat(self.file.fileno()).st_size:
            raise damaged(f"entry {name!r} reaches past the end")
        if not nbytes:
            return allocate(0)
        # Maps begin at pages: map from the page's beginning, and skip the bytes before the entry.
        before = start % mmap.ALLOCATIONGRANULARITY
        pages = mmap.mmap(self.file.fileno(), nbytes + before, offset=start - before,
                          access=mmap.ACCESS_WRITE if maps_shared() else mmap.ACCESS_COPY)
        return storage_of_array(np.frombuffer(pages, np.uint8)[before:], CPU)

    def _sized(self, name: str, nbytes: int) -> zipfile.ZipInfo:
        info = self._info(name)
        if info.file_size != nbytes:
            raise damaged(f"entry {name!r:.80} has {info.file_size} bytes instead of {nbytes}")
        return info


def damaged(why: Any) -> RuntimeError:
    """Return the error about a file that is no whole archive."""
    return RuntimeError(f"failed reading zip archive: {why}. The file is damaged: it was not saved "
                        "properly, not transferred completely, or modified after saving.")
