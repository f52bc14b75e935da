"""PyTorch scripts on tracejit: lists the names they use, and runs them with tracejit as `torch`.

In: a script's text or path. Out: its torch names, marked if tracejit has them; or the script run as
`__main__`. Called by: `python -m tracejit check` and `run`.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple


class TorchName(NamedTuple):
    """Name of torch in a script: the line of its first use, and True if tracejit has it."""

    dotted: str
    line: int
    present: bool


def names_in(source: str, filename: str = "<script>") -> list[TorchName]:
    """Return the torch names a script mentions, in order of their first use.

    Methods of tensors are not among them: the text does not tell the type of `x` in `x.sum()`.
    Raises SyntaxError where the text is no Python.

    >>> for name in names_in("import torch.nn as nn, torch\\nnn.Linear(2, torch.mps)"):
    ...     print(name)
    TorchName(dotted='torch.nn', line=1, present=True)
    TorchName(dotted='torch.nn.Linear', line=2, present=True)
    TorchName(dotted='torch.mps', line=2, present=False)
    """
    tree = ast.parse(source, filename)
    aliases = _aliases(tree)
    first: dict[str, int] = {}
    for dotted, line in sorted(_mentions(tree, aliases), key=lambda mention: mention[1]):
        first.setdefault(dotted, line)
    longer = tuple(first)
    return [
        TorchName(dotted, line, has(dotted)) for dotted, line in first.items()
        # `torch.nn` inside `torch.nn.Linear` is no name of its own, unless it was imported.
        if dotted != "torch" and (dotted in aliases.values()
                                  or not any(n.startswith(dotted + ".") for n in longer))
    ]


def has(dotted: str) -> bool:
    """Return True if tracejit has this name of torch's, if need be in a package of an extra.

    >>> has("torch.nn.functional.gelu"), has("torch.mps.load")
    (True, False)
    """
    found: Any = importlib.import_module("tracejit")
    path = "tracejit"
    for part in dotted.split(".")[1:]:
        path += f".{part}"
        try:
            there = hasattr(found, part)
        except ImportError:  # tracejit has it, and says which package it needs
            return True
        if isinstance(found, ModuleType) and not there and _is_module(path):
            found = importlib.import_module(path)
        elif there:
            found = getattr(found, part)
        else:
            return False
    return True


def _is_module(path: str) -> bool:
    try:
        return importlib.util.find_spec(path) is not None
    except ModuleNotFoundError:
        return False


def _aliases(tree: ast.AST) -> dict[str, str]:
    """Return the names that a script binds by importing from torch, with their torch names."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "torch":
                    bound = alias.asname or "torch"
                    found[bound] = alias.name if alias.asname else "torch"
        elif isinstance(node, ast.ImportFrom) and not node.level:
            if (node.module or "").split(".")[0] == "torch":
                found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return found


def _mentions(tree: ast.AST, aliases: dict[str, str]) -> Iterator[tuple[str, int]]:
    """Yield (dotted name, line) of each import, and of each use through a name that was
    imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "torch":
                    yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
            for alias in node.names:
                yield f"{node.module}.{alias.name}".removesuffix(".*"), node.lineno
        elif isinstance(node, ast.Attribute):
            dotted = _dotted(node, aliases)
            if dotted:
                yield dotted, node.lineno


def _dotted(node: ast.expr, aliases: dict[str, str]) -> str:
    """Return `torch.nn.Linear` for an expression that spells it through an alias; empty for
    others."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id in aliases:
        return ".".join([aliases[node.id], *reversed(parts)])
    return ""


# -- running -------------------------------------------------------------------------------------


class _TorchFinder(importlib.abc.MetaPathFinder):
    """Finds `torch.x` where `tracejit.x` is, as the same module object."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname.split(".")[0] != "torch":
            return None
        own = "tracejit" + fullname.removeprefix("torch")
        if not _is_module(own):
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
    own = importlib.import_module("tracejit")
    if sys.modules.get("torch", own) is not own:
        raise ImportError("PyTorch is imported already in this process")
    finder = _TorchFinder()
    argv, paths = sys.argv, sys.path[:]
    sys.meta_path.insert(0, finder)
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(Path(path).resolve().parent))
    own.__name__ = "torch"  # packages compare it with the first part of their imports
    try:
        return runpy.run_path(path, run_name="__main__")
    finally:
        own.__name__ = "tracejit"
        sys.argv, sys.path[:] = argv, paths
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
            del sys.modules[name]
