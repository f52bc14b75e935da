"""Runs PyTorch programs with tracejit as `torch`.

In: a script's path, or a module's name. Out: its globals, run as `__main__`. Called by
`python -m tracejit run`.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any


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
    imports.
    """
    own = importlib.import_module("tracejit")
    if sys.modules.get("torch", own) is not own:
        raise ImportError("PyTorch is imported already in this process")
    finder = _TorchFinder()
    before, paths = sys.argv, sys.path[:]
    sys.meta_path.insert(0, finder)
    sys.argv = argv
    sys.path.insert(0, folder)
    own.__name__ = "torch"
    try:
        yield
    finally:
        own.__name__ = "tracejit"
        sys.argv, sys.path[:] = before, paths
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
            del sys.modules[name]


def is_module(path: str) -> bool:
    """Return True if there is a module of this name, without importing it."""
    try:
        return importlib.util.find_spec(path) is not None
    except ModuleNotFoundError:
        return False
