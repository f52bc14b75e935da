"""Uses of torch in a program: names, methods of tensors, keywords; and its other imports.

In: a text of Python. Out: `Uses`. Called by `check`. Nothing of the text is run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tracejit.commands.tensor_types import TensorTypes


class Use(NamedTuple):
    """Use of a name: `torch.nn.Linear`, or `Tensor.sum`. `keyword` is one that a call gives."""

    dotted: str
    line: int
    keyword: str = ""


class Uses(NamedTuple):
    """Uses in one text, in order, and the lines of its imports by package."""

    uses: list[Use]
    packages: dict[str, int]


def uses_in(text: str, filename: str = "<program>") -> Uses:
    """Return the uses of torch in a text. Raises SyntaxError where it is no Python.

    >>> found = uses_in("import torch, numpy\\nx = torch.ones(2)\\nx.sum(axis=0)")
    >>> [(use.dotted, use.keyword) for use in found.uses], found.packages
    ([('torch', ''), ('torch.ones', ''), ('Tensor.sum', 'axis'), ('Tensor.sum', '')], {'numpy': 1})
    """
    tree = ast.parse(text, filename)
    rebound = set(_rebound(tree))  # `optim = optim.SGD(...)`: afterwards it is no module
    aliases = {k: v for k, v in aliases_in(tree).items() if k not in rebound}
    reader = _Reader(aliases, TensorTypes(tree, aliases))
    reader.visit(tree)
    return Uses(sorted(reader.uses, key=lambda use: use.line), dict(_packages(tree)))


def aliases_in(tree: ast.AST) -> dict[str, str]:
    """Return the names that a program binds by importing from torch, with their torch names."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _root(alias.name) == "torch":
                    bound = alias.asname or "torch"
                    found[bound] = alias.name if alias.asname else "torch"
        elif isinstance(node, ast.ImportFrom) and not node.level:
            if _root(node.module) == "torch":
                found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return found


def dotted_name(node: ast.expr, aliases: dict[str, str]) -> str:
    """Return `torch.nn.Linear` for an expression that spells it through an alias; "" for others."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id in aliases:
        return ".".join([aliases[node.id], *reversed(parts)])
    return ""


def _rebound(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def _root(name: str | None) -> str:
    return (name or "").partition(".")[0]


def _packages(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield each package that is imported beside torch, and the line; relative imports aside."""
    seen = set()
    for node in ast.walk(tree):
        names: list[str | None] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module]
        for root in map(_root, names):
            if root not in ("", "torch", *seen):
                seen.add(root)
                yield root, getattr(node, "lineno", 0)


class _Reader(ast.NodeVisitor):
    """Reader of one text."""

    def __init__(self, aliases: dict[str, str], types: TensorTypes):
        self.aliases, self.types = aliases, types
        self.uses: list[Use] = []

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if _root(alias.name) == "torch":
                self._add(alias.name, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if _root(node.module) == "torch" and not node.level:
            for alias in node.names:
                self._add(f"{node.module}.{alias.name}".removesuffix(".*"), node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        dotted = dotted_name(node, self.aliases)
        if dotted:  # the longest name alone
            self._add(dotted, node)
            return
        method = self.types.method(node)
        if method:
            self._add(method, node)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        bound = self.aliases.get(node.id, "torch")
        if bound != "torch" and isinstance(node.ctx, ast.Load):
            self._add(bound, node)

    def visit_Call(self, node: ast.Call) -> None:
        called = dotted_name(node.func, self.aliases)
        if not called and isinstance(node.func, ast.Attribute):
            called = self.types.method(node.func)
        if called:
            for keyword in node.keywords:
                if keyword.arg:
                    self._add(called, keyword.value, keyword.arg)
        self.generic_visit(node)

    def _add(self, dotted: str, node: ast.AST, keyword: str = "") -> None:
        self.uses.append(Use(dotted, getattr(node, "lineno", 0), keyword))
