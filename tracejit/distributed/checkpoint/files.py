"""Files of a checkpoint: data in safetensors, and an index that says which file has what.

In: named tensors of a process. Out: files that are whole or not there. Called by `saving`.

Data files get new names each time. The index is replaced last, in one step, so a process that is
killed leaves the checkpoint that was there before. Nothing in these files is ever run.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tracejit import safetensors

INDEX = "index.json"
FORMAT = 1


class FileSystemWriter:
    """Folder that a checkpoint is written to, with options for `save`.

    path        the folder; made if it is not there
    sync_files  wait until the data is on the disk before the index names it
    overwrite   False: RuntimeError if there is a checkpoint already

    The other arguments are taken, and without effect.

    >>> import tempfile
    >>> from tracejit.distributed import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = checkpoint.FileSystemWriter(folder, overwrite=False)
    ...     checkpoint.save({"step": 3}, storage_writer=writer)
    ...     sorted(file.suffix for file in writer.path.iterdir())
    ['.json', '.safetensors']
    """

    def __init__(
        self, path: str | os.PathLike, single_file_per_rank: bool = True, sync_files: bool = True,
        thread_count: int = 1, per_thread_copy_ahead: int = 10_000_000, overwrite: bool = True,
    ) -> None:  # fmt: skip
        self.path, self.sync_files, self.overwrite = Path(path), sync_files, overwrite

    def prepare(self) -> None:
        """Make the folder. RuntimeError if a checkpoint may not be replaced."""
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.overwrite and (self.path / INDEX).exists():
            raise RuntimeError(f"there is a checkpoint in {self.path}, and overwrite is False")

    def write_data(self, rank: int, tensors: dict[str, Any]) -> str:
        """Write the tensors of a process; return the file's name."""
        name = f"rank{rank}-{secrets.token_hex(8)}.safetensors"
        file = self.path / name
        safetensors.save_file(tensors, file)
        self._sync(file)
        return name

    def write_index(self, index: dict[str, Any]) -> None:
        """Put an index in the place of the one that is there."""
        beside = self.path / f"{INDEX}.{secrets.token_hex(8)}"
        beside.write_text(json.dumps({"format": FORMAT, **index}, indent=1))
        self._sync(beside)
        os.replace(beside, self.path / INDEX)
        self._sync(self.path)

    def _sync(self, path: Path) -> None:
        if not self.sync_files or (path.is_dir() and os.name == "nt"):
            return
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def remove_others(self, kept: Iterable[str]) -> None:
        """Remove data files that the index does not name, and what killed processes left."""
        names = set(kept)
        for pattern in ("rank*-*.safetensors*", f"{INDEX}.*"):
            for file in self.path.glob(pattern):
                if file.name not in names:
                    file.unlink(missing_ok=True)


class FileSystemReader:
    """Folder that a checkpoint is read from. Files are opened when they are needed.

    path  the folder that `save` wrote

    Its methods raise FileNotFoundError if there is no checkpoint, and ValueError for another
    format.

    >>> import tempfile
    >>> from tracejit.distributed import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint.save({"step": 3}, checkpoint_id=folder)
    ...     list(checkpoint.FileSystemReader(folder).read_index()["keys"])
    ['step']
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)
        self._open: dict[str, dict[str, Any]] = {}

    def read_index(self) -> dict[str, Any]:
        """Return the index. FileNotFoundError if there is no checkpoint, ValueError if it is none
        of these."""
        file = self.path / INDEX
        if not file.exists():
            raise FileNotFoundError(f"there is no checkpoint in {self.path}")
        found = json.loads(file.read_text())
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise ValueError(f"{file} is no index of a checkpoint of format {FORMAT}")
        return found

    def read(self, file: str, key: str) -> Any:
        """Return a tensor of a data file."""
        if Path(file).name != file:
            raise ValueError(f"the index names {file!r}, which is not in the checkpoint's folder")
        if file not in self._open:
            self._open[file] = safetensors.load_file(self.path / file)
        return self._open[file][key]
