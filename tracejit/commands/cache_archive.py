"""Kernel caches in one file: written on one machine, read into the cache of another.

In: the cache's folder, or an archive. Out: the other. Called by `python -m tracejit cache export`
and `import`.

    manifest.json             versions, target, and size and SHA-256 of each pack
    native-<key>/<sum>.pack   the packs of this version and this target

An import runs nothing. It writes nothing before everything in the archive is checked. A digest
shows that bytes are whole, not who wrote them. So the archive must be a file that only the user or
root can write, as for packs, or its own digest must be given.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from tracejit import version
from tracejit.config import flags
from tracejit.jit.lowering.target import TargetError, processor
from tracejit.jit.runtime import cache, cache_folder, packs

FORMAT = "tracejit kernel cache 1"
MANIFEST = "manifest.json"
_NAME = re.compile(r"native-[0-9a-f]{16}(-sm_\d{2,3})?/[0-9a-f]{32}\.pack")
_DAY = (1980, 1, 1, 0, 0, 0)  # equal caches give equal archives
_MOST_PACKS = 100_000


class TransferError(ValueError):
    """Error: an archive cannot be written, is damaged, not trusted, or for another place."""


class Transfer(NamedTuple):
    """Result of an export or import: `digest` is the archive's SHA-256."""

    packs: int
    kernels: int
    nbytes: int
    digest: str


def description() -> dict[str, Any]:
    """Return what kernels of this process depend on, as an archive's manifest has it.

    Raises `lowering.target.TargetError` where this processor is not of the target.
    """
    import llvmlite
    import llvmlite.binding as llvm
    import numba
    import numpy

    return {
        "format": FORMAT, "tracejit": version.tracejit, "llvmlite": llvmlite.__version__,
        "numba": numba.__version__, "numpy": numpy.__version__,
        "machine": llvm.get_process_triple(), "target": flags.target,
        "processor": processor()[0], "key": cache.environment_key(),
    }  # fmt: skip


# -- export --------------------------------------------------------------------------------------


def export_cache(path: Path) -> Transfer:
    """Write the packs of this version and target into one file.

    Raises TransferError where there is none, OSError where the file cannot be written.
    """
    said = description()
    found: dict[str, bytes] = {}
    rows: list[dict[str, Any]] = []
    for pack in _own_packs(said["key"]):
        data, folder = cache_folder.read_file(pack), pack.parent.name
        try:
            held = packs.contents(data, folder)
        except ValueError as error:
            raise TransferError(f"{pack} is damaged ({error}); remove it with `python -m tracejit "
                                "cache prune`") from None
        found[f"{folder}/{pack.name}"] = data
        rows.append({"name": f"{folder}/{pack.name}", "bytes": len(data),
                     "sha256": _digest(data), "function": held.function,
                     "kernels": len(held.digests)})
    if not rows:
        raise TransferError(f"{cache_folder.root_directory() or flags.cache_dir} has no kernels of "
                            f"tracejit {said['tracejit']} for target {said['target']}: run the "
                            "program once with this TRACEJIT_TARGET and TRACEJIT_CACHE_DIR")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, MANIFEST, json.dumps({**said, "packs": rows}, indent=1).encode())
        for name, data in found.items():
            _add(archive, name, data)
    whole = buffer.getvalue()
    cache_folder.write_file(path, whole)
    return Transfer(len(rows), sum(row["kernels"] for row in rows), len(whole), _digest(whole))


def _own_packs(key: str) -> list[Path]:
    root = cache_folder.root_directory()
    folders = sorted(root.glob(f"native-{key}*")) if root else []
    return [path for folder in folders if not folder.is_symlink()
            for path in sorted(folder.glob("*.pack")) if packs.PACK.fullmatch(path.name)]


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name, _DAY)
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    archive.writestr(entry, data)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# -- import --------------------------------------------------------------------------------------


def import_cache(path: Path, digest: str = "", for_all: bool = False) -> Transfer:
    """Check an archive and write its packs into the cache's folder.

    digest   the archive's SHA-256, from a source that is trusted; then the owner does not matter
    for_all  let other users read the cache, as those that a container runs as

    Raises TransferError where the archive is refused, OSError where packs cannot be written.
    """
    whole = _trusted_bytes(path, digest)
    try:
        with zipfile.ZipFile(io.BytesIO(whole)) as archive:
            manifest = _manifest(archive)
            _same_place(manifest)
            found = _checked_packs(archive, manifest)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, KeyError, NotImplementedError,
            RuntimeError, TypeError, ValueError, zlib.error) as error:  # fmt: skip
        if isinstance(error, TransferError):
            raise TransferError(f"{path}: {error}") from None
        if isinstance(error, TargetError):
            raise
        raise TransferError(f"{path} is no archive of a kernel cache ({error})") from None
    for name, (data, digests) in found.items():
        folder = _folder(name.partition("/")[0], for_all)
        written = packs.keep_pack(folder, data, digests)
        if for_all:
            written.chmod(0o644)
    kernels = sum(len(digests) for _, digests in found.values())
    return Transfer(len(found), kernels, len(whole), _digest(whole))


def _trusted_bytes(path: Path, digest: str) -> bytes:
    if digest:
        data = path.read_bytes()
        if _digest(data) != digest.lower():
            raise TransferError(f"{path}: its SHA-256 is {_digest(data)}, not the one given")
        return data
    try:
        return cache_folder.read_file(path)
    except ValueError as error:
        raise TransferError(f"{path} is not trusted ({error}); copy it to a file of your own that "
                            "others cannot write, or give --sha256 as the export printed it"
                            ) from None


def _manifest(archive: zipfile.ZipFile) -> dict[str, Any]:
    found = json.loads(_read(archive, MANIFEST, cache_folder.MOST_BYTES >> 4))
    if not isinstance(found, dict) or not isinstance(found.get("packs"), list):
        raise TransferError("its manifest has another shape")
    return found


def _read(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    with archive.open(archive.getinfo(name)) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise TransferError(f"{name} is larger than it should be")
    return data


def _same_place(manifest: dict[str, Any]) -> None:
    """Raise TransferError for kernels of other versions, or another target, naming both."""
    here = description()
    if manifest.get("format") != FORMAT:
        raise TransferError(f"its format is {manifest.get('format')!r}, not {FORMAT!r}")
    if manifest.get("target") != here["target"]:
        raise TransferError(f"its kernels are for target {manifest.get('target')}, and this "
                            f"process uses {here['target']} (TRACEJIT_TARGET)")
    for part in ("tracejit", "llvmlite", "numba", "numpy", "machine", "processor"):
        if manifest.get(part) != here[part]:
            advice = ""
            if part == "processor":
                advice = "; export with a baseline such as TRACEJIT_TARGET=x86-64-v3"
            raise TransferError(f"it was made for {part} {manifest.get(part)}, and here is "
                                f"{here[part]}{advice}")
    if manifest.get("key") != here["key"]:
        raise TransferError("it was made by another build of the same tracejit version, or by "
                            "a processor of this name with other features")


def _checked_packs(
    archive: zipfile.ZipFile, manifest: dict[str, Any]
) -> dict[str, tuple[bytes, list[str]]]:
    """Return the bytes and digests of each pack, by its name; TransferError if one is changed."""
    rows = {str(row["name"]): row for row in manifest["packs"]}
    names = archive.namelist()
    if len(names) != len(set(names)) or set(names) != {MANIFEST, *rows}:
        raise TransferError("its files are not those of its manifest")
    if len(rows) > _MOST_PACKS or len(rows) != len(manifest["packs"]):
        raise TransferError("its manifest has another shape")
    found = {}
    for name, row in rows.items():
        folder = name.partition("/")[0]
        if not _NAME.fullmatch(name) or not folder.startswith(f"native-{manifest['key']}"):
            raise TransferError(f"{name!r} is no name of a pack")
        size = row["bytes"]
        if type(size) is not int or not 0 < size <= cache_folder.MOST_BYTES:
            raise TransferError(f"{name} has a size that no pack has")
        data = _read(archive, name, size)
        if len(data) != size or _digest(data) != row["sha256"]:
            raise TransferError(f"{name} is damaged: its checksum differs")
        try:
            found[name] = data, packs.contents(data, folder).digests
        except ValueError as error:
            raise TransferError(f"{name} is damaged: {error}") from None
    return found


def _folder(name: str, for_all: bool) -> Path:
    root, folder = cache_folder.root_directory(), cache_folder.subfolder(name)
    if root is None or folder is None:
        raise TransferError(f"{flags.cache_dir} cannot be used: `python -m tracejit doctor` says "
                            "why")
    if for_all:
        if root != flags.cache_dir:
            raise TransferError(f"others can write {flags.cache_dir}, so nobody else would trust "
                                f"what is in it; `chmod go-w {flags.cache_dir}` first")
        for path in (root, folder):
            os.chmod(path, path.stat().st_mode & 0o7777 | 0o055)
    return folder
