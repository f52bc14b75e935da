"""Models by name; PyTorch's `torch.hub`, of local folders and of files.

In: folders with a `hubconf.py`, addresses of files. Out: results of the functions of `hubconf.py`,
and state dicts. Repositories on GitHub are not fetched: that would run code from the network. A
state dict is downloaded as any file, once, and reading it runs nothing.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from tracejit.core.ops import sealing as _sealing
from tracejit.serialization import load as load_file

__all__ = [
    "download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url",
    "set_dir",
]  # fmt: skip

MODULE_HUBCONF = "hubconf.py"
VAR_DEPENDENCY = "dependencies"
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
READ_DATA_CHUNK = 128 * 1024
_chosen: builtins.list[str] = []  # by set_dir


def _get_torch_home() -> str:
    """Return the folder below which PyTorch's packages keep downloads."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """Return the folder of downloads: that of `set_dir`, $TORCH_HOME/hub,
    $XDG_CACHE_HOME/torch/hub, or ~/.cache/torch/hub."""
    return _chosen[-1] if _chosen else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike) -> None:
    """Choose the folder of downloads."""
    _chosen[:] = [os.path.expanduser(d)]


# -- models ----------------------------------------------------------------------------------------
@contextmanager
def _hubconf(folder: str) -> Iterator[Any]:
    """Yield the module `hubconf.py` of a folder; its imports are looked for there too."""
    path = os.path.join(folder, MODULE_HUBCONF)
    sys.path.insert(0, folder)
    try:
        spec: Any = importlib.util.spec_from_file_location(MODULE_HUBCONF, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(folder)


def _local(repo: str, source: str) -> str:
    if source not in ("github", "local"):
        raise ValueError(
            f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise NotImplementedError(
            f"hub: repositories are not fetched from GitHub, nor is their code run; get {repo} "
            'yourself and name its folder with source="local", or load its weights with '
            "load_state_dict_from_url")
    return os.path.expanduser(repo)


def _entry(module: Any, model: str) -> Callable[..., Any]:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    missing = [name for name in getattr(module, VAR_DEPENDENCY, None) or ()
               if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    function = getattr(module, model, None)
    if function is None or not callable(function):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return function


def load(repo_or_dir: str, model: str, *args: Any, source: str = "github",
         trust_repo: Any = "check", force_reload: bool = False, verbose: bool = True,
         skip_validation: bool = False, **kwargs: Any) -> Any:
    """Call the function `model` of the folder's `hubconf.py` with the arguments.

    source  must be "local": `repo_or_dir` is a folder

    NotImplementedError for repositories on GitHub, ValueError for other sources, RuntimeError where
    the function, or a package it depends on, is missing.
    """
    with _hubconf(_local(repo_or_dir, source.lower())) as module:
        return _entry(module, model)(*args, **kwargs)


def list(github: str, force_reload: bool = False, skip_validation: bool = False,
         trust_repo: Any = "check", verbose: bool = True) -> builtins.list[str]:
    """List the functions that a folder's `hubconf.py` offers; NotImplementedError for other
    places."""
    with _hubconf(_folder_of(github)) as module:
        return [name for name in dir(module)
                if callable(getattr(module, name)) and not name.startswith("_")]


def help(github: str, model: str, force_reload: bool = False, skip_validation: bool = False,
         trust_repo: Any = "check") -> str | None:
    """Return a function's docstring in a folder's `hubconf.py`; NotImplementedError for other
    places."""
    with _hubconf(_folder_of(github)) as module:
        return _entry(module, model).__doc__


def _folder_of(place: str) -> str:
    found = os.path.expanduser(place)
    return found if os.path.isdir(found) else _local(place, "github")


# -- files -----------------------------------------------------------------------------------------
def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None,
                         progress: bool = True) -> None:
    """Copy the file at an address to a file here, which appears as a whole or not at all.

    hash_prefix  the first digits of its SHA-256, in hexadecimal

    RuntimeError for another hash, URLError (with the address) where nothing can be read.
    """
    target = os.path.expanduser(dst)
    digest = hashlib.sha256()
    partial = tempfile.NamedTemporaryFile(
        delete=False, dir=os.path.dirname(os.path.abspath(target)), suffix=".partial")
    try:
        with partial, _opened(url) as source:
            while chunk := source.read(READ_DATA_CHUNK):
                partial.write(chunk)
                digest.update(chunk)
        found = digest.hexdigest()
        if hash_prefix is not None and found[:len(hash_prefix)] != hash_prefix:
            raise RuntimeError(
                f'invalid hash value (expected "{hash_prefix}", got "{found}")')
        shutil.move(partial.name, target)
    finally:
        Path(partial.name).unlink(missing_ok=True)


def _opened(url: str) -> Any:
    try:
        return urlopen(Request(url, headers={"User-Agent": "tracejit.hub"}))
    except URLError as error:
        if hasattr(error, "code"):  # the server answered
            raise
        raise URLError(f"{url} cannot be read: {error.reason}") from None


def load_state_dict_from_url(url: str, model_dir: str | None = None, map_location: Any = None,
                             progress: bool = True, check_hash: bool = False,
                             file_name: str | None = None, weights_only: bool = False) -> Any:
    """Load the file at an address with `tracejit.load`.

    The file is kept in `model_dir` (None: `checkpoints` in `get_dir()`) and not downloaded again.

    check_hash  the file's name ends in the first digits of its SHA-256, as in net-0a1b2c3d.pt
    file_name   its name here; None: the one in the address

    RuntimeError for another hash, URLError where nothing can be read.
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    kept = os.path.join(folder, name)
    if not os.path.exists(kept):
        sys.stdout.write(f'Downloading: "{url}" to {kept}\n')
        match = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, kept, match.group(1) if match else None, progress)
    return load_file(kept, map_location=map_location)  # a state dict needs no code


_sealing.seal_all(globals())
