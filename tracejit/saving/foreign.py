"""Files that `load` cannot read: names their kind, and the program that reads them.

In: a file at the place where `load` begins, or the names in a zip archive. Out: a sentence that
names the kind of the file, None for a file that may be a saved one. Called by: `serialization`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

_ADVICE = "load reads files that `save` or `torch.save` wrote"
_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file: h5py reads it"),
    (b"\x93NUMPY", "a NumPy array: numpy.load reads it"),
    (b"\x1f\x8b", "compressed by gzip: unpack it first, or hand over gzip.open(path)"),
    (b"BZh", "compressed by bzip2: unpack it first, or hand over bz2.open(path)"),
    (b"\xfd7zXZ\x00", "compressed by xz: unpack it first, or hand over lzma.open(path)"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstandard: unpack it first"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it first"),
    (b"Rar!\x1a\x07", "a RAR archive: unpack it first"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image: Pillow or torchvision.io reads it"),
    (b"\xff\xd8\xff", "a JPEG image: Pillow or torchvision.io reads it"),
    (b"GIF8", "a GIF image: Pillow reads it"),
    (b"%PDF-", "a PDF document"),
    (b"PAR1", "a Parquet table: pandas or pyarrow reads it"),
    (b"GGUF", "a GGUF model: llama.cpp reads it"),
    (b"SQLite format 3\x00", "an SQLite database: sqlite3 reads it"),
    (b"version https://git-lfs", "a git-lfs pointer, not the file itself: run `git lfs pull`"),
)  # fmt: skip
_LEGACY = (0x1950A86A20F9469CFC6C).to_bytes(10, "little")  # in all files before PyTorch 1.6
_MARKUP = (b"<!doctype html", b"<html", b"<?xml", b"<head", b"<body")
_HTML = "a page of HTML, not the file itself: what was downloaded may be a page that asks to log in"


def what_is(file: Any) -> str | None:
    """Name the kind of a file that no `save` wrote, by its first bytes; it stays where it was.

    >>> import io
    >>> what_is(io.BytesIO(b"GIF89a..."))
    'the file is a GIF image: Pillow reads it. load reads files that `save` or `torch.save` wrote'
    """
    start = file.tell()
    head = bytes(file.read(512))
    end = file.seek(0, os.SEEK_END)
    file.seek(start)
    found = _of_head(head, end - start)
    return f"the file is {found}. {_ADVICE}" if found else None


def _of_head(head: bytes, size: int) -> str | None:
    for beginning, name in _BEGINNINGS:
        if head.startswith(beginning):
            return name
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "a WebP image: Pillow reads it"
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if text.startswith(_MARKUP):
        return _HTML
    if head[257:262] == b"ustar" and not head.startswith(b"\x80"):
        return "a tar archive: unpack it first with tarfile"
    if is_safetensors(head, size):
        return "in the safetensors format: tracejit.safetensors.load_file reads it"
    if text[:1] in (b"{", b"[") and _is_text(head):
        return "JSON text: json.load reads it"
    if _is_onnx(head):
        return "an ONNX model: onnx.load reads it"
    return None


def _is_onnx(head: bytes) -> bool:
    """Return True for a protobuf whose first field is a small version, as a ModelProto begins."""
    return len(head) > 8 and head[0] == 8 and 0 < head[1] < 32 and head[2] in (18, 34, 58, 66)


def is_plain_pickle(file: Any) -> bool:
    """Return True for a pickle that `save` did not write; the file stays where it was.

    >>> import io, pickle
    >>> is_plain_pickle(io.BytesIO(pickle.dumps([1])))
    True
    """
    start = file.tell()
    head = bytes(file.read(32))
    file.seek(start)
    return head[:1] == b"\x80" and 2 <= int(head[1:2].hex() or "0", 16) <= 5 and (
        _LEGACY not in head
    )


PLAIN_PICKLE = f"The file is a plain pickle: if you trust it, pickle.load reads it. {_ADVICE}"


def is_safetensors(head: bytes, size: int) -> bool:
    """Return True for the beginning of a safetensors file: a length, then a JSON object.

    >>> is_safetensors((2).to_bytes(8, "little") + b"{}", 10)
    True
    """
    length = int.from_bytes(head[:8], "little")
    return 2 <= length <= size - 8 and head[8:9] == b"{" and head[:2] != b"PK"


def _is_text(head: bytes) -> bool:
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(head) - 4
    return b"\x00" not in head


def of_archive(names: Iterable[str]) -> str | None:
    """Name the kind of a zip archive that `save` did not write, by the names in it.

        >>> of_archive(["a.npy", "b.npy"])
        'the file is a NumPy archive (.npz): numpy.load reads it. load reads files that `save` or \
    `torch.save` wrote'
    """
    names = list(names)
    inner = [name.partition("/")[2] for name in names if "/" in name]
    if "constants.pkl" in inner:
        return ("the file is a TorchScript archive, as torch.jit.save writes it: it holds a "
                "program, which `torch.jit.load` of PyTorch runs. Save the module's state_dict() "
                "there, and load that here")
    if "data.pkl" in inner:
        return None
    found = "a zip archive with other things in it than data.pkl"
    if names and all(name.endswith(".npy") for name in names):
        found = "a NumPy archive (.npz): numpy.load reads it"
    elif any(name.startswith("word/") for name in names):
        found = "a Word document"
    elif any(name.startswith("xl/") for name in names):
        found = "an Excel table: pandas reads it"
    elif "model.weights.h5" in names:
        found = "a Keras model: keras.models.load_model reads it"
    elif any(name.startswith("models/") or "archive/package" in name for name in names):
        found = "an archive of torch.export or torch.package, which holds a program"
    return f"the file is {found}. {_ADVICE}"
