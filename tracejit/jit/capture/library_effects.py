"""Effects of tracejit's own functions on Python objects: `Module.train`, `LRScheduler.step`.

In: a code object of ours. Out: True if it may set attributes, or change containers that it did not
make. A trial may not run such code, for nothing could take the change back. Writes to tensors do
not count: the tracer follows them. Called by `speculation`.
"""

from __future__ import annotations

import ast
import functools
import os
from types import CodeType

from tracejit.jit.capture.location import PACKAGE, REWRITTEN

# Rooms whose objects the user holds, and changes by calling their methods.
_NAMES = ("amp", "backends", "cuda", "cpu", "distributions", "nn", "optim", "sparse", "utils")
_ROOMS = tuple(os.path.join(PACKAGE, room) + os.sep for room in _NAMES)
_TELLS = os.path.join(PACKAGE, "optim", "state.py")  # it tells the tracer what it changes
# They fill containers that our own code has just made.
_QUIET = frozenset({"_flatten", "_backward_hooks", "Listing.named_modules"})
# Functions that change settings of the process, as `set_default_dtype`; others named like them.
_SETTINGS = ("set_", "use_", "enable_", "disable_", "seed", "manual_seed")
_NO_SETTINGS = frozenset({"set_", "set_data", "set_history", "set_item", "set_momentum"})
_CHANGES = frozenset(
    "add append clear discard extend insert move_to_end pop popitem remove reverse setdefault sort "
    "update __delitem__ __setattr__ __setitem__".split()
)
_SETTERS = frozenset({"setattr", "delattr"})


def changes_objects(code: CodeType) -> bool:
    """Return True if a function of ours may change settings, or objects that it did not make.

    >>> import tracejit
    >>> changes_objects(tracejit.nn.Module.train.__code__)
    True
    >>> changes_objects(tracejit.nn.Module.named_parameters.__code__)
    False
    """
    name, place = code.co_qualname, code.co_filename
    if name.startswith(_SETTINGS) and place.startswith(PACKAGE):
        return name not in _NO_SETTINGS
    if not place.startswith(_ROOMS) or place in (*REWRITTEN, _TELLS) or name in _QUIET:
        return False
    return _changes(place, code.co_name, code.co_firstlineno)


@functools.lru_cache(4096)  # by name and line: hashing code takes longer
def _changes(filename: str, name: str, line: int) -> bool:
    node = _functions(filename).get((name, line))
    return node is not None and _Changes(node).found


@functools.lru_cache(256)
def _functions(filename: str) -> dict[tuple[str, int], ast.AST]:
    """Return the functions of a file by name and first line, decorators included."""
    with open(filename, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    found: dict[tuple[str, int], ast.AST] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found[node.name, first] = node
    return found


class _Changes(ast.NodeVisitor):
    """Search of one function for statements that change what it did not make. `own`: its variables
    that hold only containers and objects made there."""

    def __init__(self, node: ast.AST):
        self.found = False
        values = [(n.targets, n.value) for n in ast.walk(node) if isinstance(n, ast.Assign)]
        values += [([n.target], n.value) for n in ast.walk(node)
                   if isinstance(n, ast.AnnAssign) and n.value is not None]  # fmt: skip
        self.own: set[str] = set()
        other: set[str] = set()
        for targets, value in values:
            for target in targets:
                if isinstance(target, ast.Name):
                    (self.own if _makes(value) else other).add(target.id)
        self.own -= other
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Skip an inner function: it is judged when it runs."""

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_Global(self, node: ast.Global) -> None:
        self.found = True

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load) and not self._is_own(node.value):
            self.found = True
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load) and not self._is_own(node.value):
            self.found = True
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func
        if isinstance(called, ast.Name) and called.id in _SETTERS:
            self.found |= not (node.args and self._is_own(node.args[0]))
        if isinstance(called, ast.Attribute) and called.attr in _CHANGES:
            self.found |= not self._is_own(called.value)
        self.generic_visit(node)

    def _is_own(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id in self.own


def _makes(value: ast.AST) -> bool:
    """Return True if an expression makes a new object: a display, a class that is called."""
    if isinstance(value, ast.Call):
        name = value.func.id if isinstance(value.func, ast.Name) else ""
        return name in ("dict", "list", "set", "cls") or name[:1].isupper()
    kinds = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
    return isinstance(value, kinds)
