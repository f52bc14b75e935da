"""Statements of one kernel put into another: its operands become locals, its loops stay.

In: a `Kernel`, and a `Home` for each of its operands. Out: lines of text in which the operands are
those homes and every other name is new. Called by `loop_kernel.py`. A kernel's text is parsed, its
names are changed, and it is written again, so whatever `kernels.py` writes can be put elsewhere.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracejit.jit.lowering.abi import LOCALS, POINTERS, SCRATCH
from tracejit.jit.lowering.program import Kernel

INDENT = "    "
_COMPARES: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_TEMPORARY = re.compile(r"v\d+")
_FETCHES = {function.__name__ for function in POINTERS.values()}
_OWN = {function.__name__ for function in (*SCRATCH.values(), *LOCALS.values())}


@dataclass(frozen=True)
class Home:
    """Place of a value: a local number, or memory from element `offset` of a pointer on.

    element  type of its elements, as kernels see them
    """

    name: str
    element: str
    pointer: bool = False
    offset: str = ""

    def at(self, index: str) -> str:
        """Return the text of an element."""
        return f"{self.name}[{self.within(index)}]" if self.pointer else self.name

    def within(self, index: str) -> str:
        """Return where an element lies behind the pointer."""
        if self.offset:
            return self.offset if index == "0" else f"{self.offset} + {index}"
        return index

    def stored(self, index: str, value: str) -> str:
        """Return the statement that stores a value, which a local gets in the type of elements."""
        return f"{self.at(index)} = {value if self.pointer else f'{self.element}({value})'}"

    def item(self, offset: str) -> Home:
        """Return the part of this memory that begins at an element."""
        if not self.pointer:
            return self
        return Home(self.name, self.element, True, offset)


@dataclass
class Module:
    """Head of the text that several kernels share: imports, constants, and names not yet taken."""

    imports: dict[str, set[str]] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)  # text -> name
    lines: list[str] = field(default_factory=list)  # other statements, such as FASTMATH
    temporaries: int = 0
    messages: list[str] = field(default_factory=list)
    scratch: int = 0
    loops: int = 0

    def imported(self, module: str, name: str) -> str:
        self.imports.setdefault(module, set()).add(name)
        return name

    def fresh(self) -> str:
        self.temporaries += 1
        return f"v{self.temporaries - 1}"

    def head(self) -> list[str]:
        """Return imports and constants at the top of the module."""
        lines = [f"from {module} import {', '.join(sorted(names))}"
                 for module, names in sorted(self.imports.items())]
        more = [*self.lines, *(f"{name} = {text}" for text, name in self.constants.items())]
        return [*lines, "", *more, ""] if more else [*lines, ""]


class Unsupported(Exception):
    """Signal: a kernel's text has a form that no other kernel can take in."""


def statements(
    module: Module, kernel: Kernel, homes: Sequence[Home], sizes: Sequence[str], total: str
) -> list[str]:
    """Return the lines of a kernel over [0, total). Raises Unsupported where that cannot be.

    homes  of its operands, in order
    sizes  the text of each of its sizes
    """
    tree = ast.parse(kernel.source)
    names: dict[str, str] = {"hi": total}
    definition = None
    for part in tree.body:
        if isinstance(part, ast.FunctionDef) and part.name == kernel.name:
            definition = part
        elif not _take_head(module, part, names):
            raise Unsupported(f"{kernel.name} has a module of its own")
    if definition is None:
        raise Unsupported(f"{kernel.name} is not in its text")
    change = _Change(module, homes, sizes, names, len(module.messages))
    module.messages += kernel.messages
    module.scratch = max(module.scratch, kernel.scratch_bytes)
    module.loops += kernel.loops
    lines: list[str] = []
    for statement in definition.body:
        lines += _text(change.statement(statement))
    return lines


def _take_head(module: Module, part: ast.stmt, names: dict[str, str]) -> bool:
    """Take an import or a constant over into the module. Return False for anything else."""
    if isinstance(part, ast.ImportFrom) and part.module:
        for alias in part.names:
            module.imported(part.module, ast.unparse(alias))
        return True
    if not isinstance(part, ast.Assign) or not isinstance(part.targets[0], ast.Name):
        return False
    name, text = part.targets[0].id, ast.unparse(part.value)
    if name == "FASTMATH":
        line = f"FASTMATH = {text}"
        if line not in module.lines:
            module.lines.append(line)
        return True
    names[name] = module.constants.setdefault(text, f"c{len(module.constants)}")
    return True


def _text(parts: Sequence[ast.stmt]) -> list[str]:
    return [line for part in parts for line in ast.unparse(part).splitlines()]


class _Change(ast.NodeTransformer):
    """Renaming of one kernel's names."""

    def __init__(self, module: Module, homes: Sequence[Home], sizes: Sequence[str],
                 names: dict[str, str], messages: int):  # fmt: skip
        self.module, self.homes, self.sizes, self.names = module, homes, sizes, names
        self.messages = messages
        self.operands: dict[str, Home] = {}

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """Return what stands for a statement: nothing, for one that fetches an operand."""
        found = self.visit(node)
        return [] if found is None else found if isinstance(found, list) else [found]

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | None:
        (target,) = node.targets
        if isinstance(target, ast.Name) and self._fetch(target.id, node.value):
            return None
        value = self.visit(node.value)
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            home = self.operands.get(target.value.id)
            if home is not None:
                index = ast.unparse(self.visit(target.slice))
                return ast.parse(home.stored(index, ast.unparse(value))).body[0]
            if target.value.id == "status" and _number(target.slice) == 0:
                value = ast.Constant(self.messages + _number(value))
        return ast.copy_location(ast.Assign([self.visit(target)], value), node)

    def _fetch(self, name: str, value: ast.expr) -> bool:
        """Return True for `x = float32_pointer(buffers, operands[k])` and `n = sizes[k]`."""
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            called = value.func.id
            if called in _FETCHES:
                place = value.args[1]
                assert isinstance(place, ast.Subscript)
                self.operands[name] = self.homes[_number(place.slice)]
                return True
            if called in _OWN:
                self.names[name] = self.module.fresh()
            return False
        if isinstance(value, ast.Subscript) and ast.unparse(value.value) == "sizes":
            self.names[name] = self.sizes[_number(value.slice)]
            return True
        return False

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id in self.operands:
            index = ast.unparse(self.visit(node.slice))
            return ast.parse(self.operands[node.value.id].at(index), mode="eval").body
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        name = node.id
        if name == "lo":
            return ast.Constant(0)
        if name not in self.names and _TEMPORARY.fullmatch(name):
            self.names[name] = self.module.fresh()
        changed = self.names.get(name, name)
        if changed.isidentifier():
            return ast.Name(changed, node.ctx)
        return ast.parse(changed, mode="eval").body

    def visit_If(self, node: ast.If) -> ast.stmt | list[ast.stmt]:
        self.generic_visit(node)
        decided = decided_by(node.test)
        if decided is None:
            return node
        return node.body if decided else node.orelse


def _number(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    raise Unsupported("operands of segments")  # they are found by a number that is computed


def decided_by(test: ast.expr) -> bool | None:
    """Return the truth of a comparison of two numbers; None for any other test."""
    if isinstance(test, ast.Compare) and isinstance(test.left, ast.Constant):
        (other,) = test.comparators
        if isinstance(other, ast.Constant):
            compare = _COMPARES.get(type(test.ops[0]))
            return None if compare is None else compare(test.left.value, other.value)
    return None
