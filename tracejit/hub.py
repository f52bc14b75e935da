"""Weights from the network, kept on disk; PyTorch's `torch.hub`, as far as files are concerned.

In: addresses. Out: files in the directory where PyTorch keeps them too, and state dicts read from
them. Code of repositories is written for PyTorch and not run.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlparse
from urllib.request import Request, urlopen

__all__ = ["download_url_to_file", "get_dir", "load", "load_state_dict_from_url", "set_dir"]

# weights-0123abcd.pt: the digits start the SHA-256 of what the file holds.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_PIECE = 1 << 17
_chosen: list[str] = []


def get_dir() -> str:
    """Where files are kept: what `set_dir` said, else `hub` in TORCH_HOME.

    TORCH_HOME is `torch` in XDG_CACHE_HOME if not set, and that is `~/.cache`.
    """
    if _chosen:
        return _chosen[0]
    caches = os.getenv("XDG_CACHE_HOME", "~/.cache")
    home = os.getenv("TORCH_HOME", os.path.join(caches, "torch"))
    return os.path.join(os.path.expanduser(home), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Keep files in another directory from now on."""
    _chosen[:] = [os.path.expanduser(d)]


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Write what is at an address to a file, which is there whole or not at all.

    hash_prefix  the first digits of the SHA-256 of what should arrive
    progress     is taken and not shown

    RuntimeError where something else arrived, what `urllib` raises where nothing does.
    """
    target = Path(dst).expanduser()
    digest = hashlib.sha256()
    with tempfile.TemporaryDirectory(dir=target.parent) as beside:
        part = Path(beside, "part")
        with urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as source:
            with part.open("wb") as file:
                while piece := source.read(_PIECE):
                    digest.update(piece)
                    file.write(piece)
        found = digest.hexdigest()
        if not found.startswith(hash_prefix or ""):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
        shutil.move(part, target)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """What `tracejit.load` reads of the file at an address, which is fetched once.

    model_dir   where it is kept; `checkpoints` in `get_dir()` if not given
    check_hash  the name of the file has the first digits of its SHA-256, as in `net-0123abcd.pth`
    file_name   under which it is kept, if not the name in the address
    """
    from tracejit.serialization import load

    directory = Path(model_dir or Path(get_dir(), "checkpoints"))
    directory.mkdir(parents=True, exist_ok=True)
    kept = directory / (file_name or os.path.basename(urlparse(url).path))
    if not kept.exists():
        sys.stdout.write(f'Downloading: "{url}" to {kept}\n')
        digits = HASH_REGEX.search(kept.name) if check_hash else None
        download_url_to_file(url, str(kept), digits[1] if digits else None, progress)
    return load(kept, map_location=map_location, weights_only=weights_only)


def load(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: the code of a repository imports PyTorch."""
    raise NotImplementedError("hub.load: a repository's code imports torch; clone it and run it "
                              "with `python -m tracejit run`, or load its weights with "
                              "hub.load_state_dict_from_url")
