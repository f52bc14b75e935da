"""Packs: the objects of kernels that were compiled together, in one file with a digest.

In: digests and objects. Out: the same, or ValueError. Called by `cache`, `cuda_kernels` and
`cache_upkeep`.

    tracejit pack 2
    <SHA-256 of all that follows>
    {"for": <the folder's name>, "digests": [...], "sizes": [...], "names": [...], "function": ...}
    <the objects, one after the other>

The names are the kernels', the function is the captured function that they were compiled for first.
A pack is valid only in the folder it was written for: another folder's code is for another machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tracejit.jit.runtime import cache_folder

MAGIC = b"tracejit pack 2\n"
_CHECK = 64
_DIGEST = re.compile(r"[0-9a-zA-Z_]{1,128}")
PACK = re.compile(r"[0-9a-f]{32}\.pack")


class Contents(NamedTuple):
    """Content of a pack. `names` and `function` are empty where it does not tell."""

    digests: list[str]
    objects: list[bytes]
    names: list[str]
    function: str


def read_pack(path: Path) -> tuple[list[str], list[bytes]]:
    """Return the digests and objects of a pack. Raises ValueError where its content was changed."""
    return contents(cache_folder.read_file(path), path.parent.name)[:2]


def contents(data: bytes, folder: str) -> Contents:
    """Return the content of a pack that was written for a folder of this name.

    Raises ValueError where it was changed, or written for another folder.
    """
    start = len(MAGIC) + _CHECK + 1
    check, payload = data[len(MAGIC) : start], data[start:]
    digest = hashlib.sha256(payload).hexdigest().encode() + b"\n"
    if data[: len(MAGIC)] != MAGIC or digest != check:
        raise ValueError("its checksum differs")
    line, _, body = payload.partition(b"\n")
    header = _header(line, folder)
    digests, sizes = _list_of(str, header.get("digests")), _list_of(int, header.get("sizes"))
    if not all(map(_DIGEST.fullmatch, digests)) or any(size < 0 for size in sizes):
        raise ValueError("its header has another shape")
    if sum(sizes) != len(body):
        raise ValueError("its header does not fit its content")
    objects = []
    for size in sizes:
        objects.append(body[:size])
        body = body[size:]
    return Contents(digests, objects, _list_of(str, header.get("names", [])),
                    str(header.get("function", "")))


def _header(line: bytes, folder: str) -> dict[str, Any]:
    """Return the header of a pack. Raises ValueError where it has another form."""
    try:
        header = json.loads(line)
    except RecursionError:
        header = None
    if not isinstance(header, dict):
        raise ValueError("its header is no header")
    if header.get("for") != folder:
        raise ValueError("it was written for another folder")
    return header


def _list_of(kind: type, found: Any) -> list[Any]:
    if not isinstance(found, list) or any(type(x) is not kind for x in found):
        raise ValueError("its header has another shape")
    return found


def write_pack(
    folder: Path, digests: Sequence[str], objects: Sequence[bytes], names: Sequence[str] = (),
    function: str = "",
) -> None:  # fmt: skip
    """Write a pack, and for each digest a link to it. Raises OSError where that cannot be done."""
    header = json.dumps({
        "for": folder.name, "digests": list(digests), "sizes": [len(o) for o in objects],
        "names": list(names), "function": function,
    })  # fmt: skip
    payload = header.encode() + b"\n" + b"".join(objects)
    check = hashlib.sha256(payload).hexdigest()
    keep_pack(folder, MAGIC + check.encode() + b"\n" + payload, digests)


def keep_pack(folder: Path, data: bytes, digests: Sequence[str]) -> Path:
    """Write a pack's bytes, and a link for each digest. Raises OSError where that fails."""
    check = data[len(MAGIC) : len(MAGIC) + _CHECK].decode()
    path = folder / f"{check[:32]}.pack"
    cache_folder.write_file(path, data)
    for digest in digests:
        cache_folder.write_link(folder / digest, path.name)
    return path


def pack_of(folder: Path, digest: str) -> Path | None:
    """Return the pack that a digest's link names; None where there is no such link.

    A link that leads elsewhere does not count: nothing outside the folder is read or removed.
    """
    try:
        name = os.readlink(folder / digest)
    except (OSError, ValueError):
        return None
    return folder / name if PACK.fullmatch(name) else None
