"""Runs PyTorch programs with tracejit as `torch`.

In: a script's path, or a module's name. Out: its globals, run as `__main__`. Called by
`python -m tracejit run`. Processes that the program starts get tracejit too: launchers of packages
start the script again. For them the folder `for_children` comes first among places of modules.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import runpy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

_CHILDREN = str(Path(__file__).parent / "for_children")


class _TorchFinder(importlib.abc.MetaPathFinder):
    """Finds `torch.x` where `tracejit.x` is, as the same module object."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname.split(".")[0] != "torch":
            return None
        own = "tracejit" + fullname.removeprefix("torch")
        if not is_module(own):
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: tracejit has no {own}; `python -m tracejit check "
                "script.py` lists everything a script needs that is missing", name=fullname)
        module = importlib.import_module(own)
        return importlib.machinery.ModuleSpec(fullname, _Same(module))


class _Same(importlib.abc.Loader):
    """Loader whose module exists already; it stays the module it was."""

    def __init__(self, module: ModuleType):
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec: Any) -> ModuleType:
        return self.module

    def get_code(self, fullname: str) -> Any:
        """Return the module's code, for `python -m torch.distributed.run`."""
        own = "tracejit" + fullname.removeprefix("torch")
        loader: Any = None if self.spec is None else self.spec.loader
        return loader.get_code(own)

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec
        # Python puts a module it finds into the package under its name. What tracejit has loaded
        # is there, and may have given way to a function of that name: it is not found anew.
        for name, loaded in list(sys.modules.items()):
            if name.startswith("tracejit."):
                sys.modules.setdefault("torch" + name.removeprefix("tracejit"), loaded)


def run_script(path: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Run a script as `__main__`, with the import name `torch` meaning tracejit in this process.

    Raises ImportError where PyTorch itself is imported already, and lets the script's errors
    through.
    """
    with tracejit_as_torch([path, *arguments], str(Path(path).resolve().parent)):
        return runpy.run_path(path, run_name="__main__")


def run_module(name: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Run a module as `python -m` does, otherwise as `run_script` runs a script."""
    with tracejit_as_torch([name, *arguments], str(Path.cwd())):
        return runpy.run_module(name, run_name="__main__", alter_sys=True)


@contextmanager
def tracejit_as_torch(argv: list[str], folder: str) -> Iterator[None]:
    """Let the import name `torch` mean tracejit within the block.

    `tracejit.__name__` is `torch` there, as packages compare it with the first part of their
    imports; pickles name `torch.storage`, which unpicklers of packages look for.
    """
    own = importlib.import_module("tracejit")
    if sys.modules.get("torch", own) is not own:
        raise ImportError("PyTorch is imported already in this process")
    before, paths, places = sys.argv, sys.path[:], os.environ.get("PYTHONPATH")
    finders = _let_torch_be(own)
    sys.argv = argv
    sys.path[:0] = [folder, _CHILDREN]  # the second for children that are spawned
    os.environ["PYTHONPATH"] = os.pathsep.join([_CHILDREN, *([places] if places else [])])
    try:
        yield
    finally:
        _name(own, "tracejit")
        sys.argv, sys.path[:] = before, paths
        if places is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = places
        for finder in finders:
            sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
            del sys.modules[name]


def _let_torch_be(own: ModuleType) -> list[importlib.abc.MetaPathFinder]:
    from tracejit.distributed.mpi_imports import MPIFinder

    finders = [_TorchFinder(), MPIFinder()]
    sys.meta_path[:0] = finders
    _name(own, "torch")
    return finders


def _name(own: ModuleType, name: str) -> None:
    """Let the package, and what its pickles read storages by, go by a name."""
    own.__name__ = name
    own.storage._load_from_bytes.__module__ = f"{name}.storage"


def tracejit_as_torch_for_good() -> ModuleType:
    """Let the import name `torch` mean tracejit from now on; return the module."""
    own = importlib.import_module("tracejit")
    _let_torch_be(own)
    return own


def is_module(path: str) -> bool:
    """Return True if there is a module of this name, without importing it."""
    try:
        return importlib.util.find_spec(path) is not None
    except ModuleNotFoundError:
        return False
