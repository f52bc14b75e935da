"""Stubs of files that define layers: the sources without their bodies, and with types.

In: the text of a file of `tracejit/nn`. Out: its stub. Tensors stand where `forward` says `Any`;
methods that return the module say so. Called by `stubs.py`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.types import class_rules, rules

_FIRST = '''\
# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
'''
_PLAIN = {kind: f"_{kind}" for kind in
          "bool bytes complex dict float int list object str tuple type".split()}
_PLAIN |= {"dtype": "_DType", "device": "_Device", "Any": "_Any"}


def class_stubs(root: Path) -> dict[str, str]:
    """Return the stubs of the layers' files by path."""
    folder = root / "tracejit/nn"
    layers = [path for path in [*folder.glob("*.py"), folder / "attention/__init__.py"]
              if path.stem != "module_backward"
              and re.search(r"^    def forward\(", path.read_text(), re.MULTILINE)]
    files = {*layers, *(folder / f"{name}.py" for name in class_rules.FILES)}
    return {path.with_suffix(".pyi").relative_to(root).as_posix():
            _Stub(path.relative_to(folder).as_posix(), path.read_text()).text()
            for path in sorted(files)}


class _Annotations(ast.NodeTransformer):
    """Builtins under names that no method hides."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Name(_PLAIN.get(node.id, node.id))

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, str):
            return self.visit(ast.parse(node.value, mode="eval").body)
        return node


class _Stub:
    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self.tree = ast.parse(source)
        self.lines: list[str] = []

    def text(self) -> str:
        imports = []
        for node in self.tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                imports.append(self._import(node))
            else:
                self._statement(node)
        own = {node.name for node in self.tree.body if isinstance(node, ast.ClassDef)}
        for kind, module in (("Module", "module"), ("Parameter", "parameter")):
            if kind in own:
                self.lines.append(f"_{kind} = {kind}")
            else:
                imports.append(f"from tracejit.nn.{module} import {kind} as _{kind}")
        imports.append("from tracejit.core.eager.tensor import Tensor")
        body = "\n".join([class_rules.EXTRA.get(self.name, ""), *self.lines])
        return _FIRST + rules.with_imports(body, [x for x in imports if x])

    def _import(self, node: ast.Import | ast.ImportFrom) -> str:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tracejit"):
            names = ", ".join(f"{x.name} as {x.asname or x.name}" for x in node.names
                              if x.name != "Tensor")
            return f"from {node.module} import {names}" if names else ""
        return "" if getattr(node, "module", "") == "__future__" else ast.unparse(node)

    def _statement(self, node: ast.stmt, owner: str = "") -> None:
        indent = "    " if owner else ""
        if isinstance(node, ast.ClassDef):
            self._class(node)
        elif isinstance(node, ast.FunctionDef):
            by_hand = class_rules.BY_HAND.get(f"{self.name}:{owner}.{node.name}")
            text = self._function(node, bool(owner)) if by_hand is None else by_hand
            self.lines += [indent + line for line in text.splitlines()]
        elif isinstance(node, ast.AnnAssign):
            written = ast.unparse(_Annotations().visit(node.annotation))
            self.lines.append(f"{indent}{ast.unparse(node.target)}: {written}")
        elif isinstance(node, ast.Assign):
            self.lines += [indent + line for line in _assigned(node)]

    def _class(self, node: ast.ClassDef) -> None:
        bases = ", ".join(map(ast.unparse, [*node.bases, *node.keywords]))
        for decorator in node.decorator_list:
            self.lines.append(f"@{ast.unparse(decorator)}")
        self.lines.append(f"class {node.name}({bases}):" if bases else f"class {node.name}:")
        before = len(self.lines)
        for statement in node.body:
            self._statement(statement, node.name)
        declared = {line.strip().split(":")[0] for line in self.lines[before:]}
        self.lines += [f"    {name}: {kind}" for name, kind in _kept_values(node)
                       if name not in declared]
        if len(self.lines) == before:
            self.lines.append("    ...")

    def _function(self, node: ast.FunctionDef, method: bool) -> str:
        forward = node.name == "forward"
        static = any(ast.unparse(d) == "staticmethod" for d in node.decorator_list)
        given = node.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
        defaults = dict(zip([*given.posonlyargs, *given.args][::-1], given.defaults[::-1]))
        defaults |= {x: d for x, d in zip(given.kwonlyargs, given.kw_defaults) if d is not None}
        for place, x in enumerate(every):
            if place or not method or static:
                x.annotation = ast.Name(self._type(x, defaults.get(x), forward))
        for x in filter(None, (given.vararg, given.kwarg)):
            x.annotation = ast.Name(_written(x.annotation))
        for value in defaults.values():
            if not isinstance(value, ast.Constant):
                _replace(given, value, ast.Constant(...))
        result = _written(node.returns) if node.returns is not None else "_Any"
        vague = "_Any" in result or result == "Module"
        if node.name in class_rules.METHODS and (vague if method else result == "_Any"):
            result = class_rules.METHODS[node.name]
        elif forward or self.name == "init.py" and result == "_Any":
            result = result.replace("_Any", "Tensor")
        decorators = "".join(f"@{ast.unparse(d)}\n" for d in node.decorator_list
                             if isinstance(d, (ast.Name, ast.Attribute)))
        return f"{decorators}def {node.name}({ast.unparse(given)}) -> {result}: ..."

    def _type(self, x: ast.arg, default: ast.expr | None, forward: bool) -> str:
        source = _written(x.annotation)
        if source != "_Any":
            return source.replace("_DType | None", "_DType").replace("_Device | None", "_Device")
        if forward:
            written = class_rules.IN_FORWARD.get(x.arg) or rules.PARAMETERS.get(x.arg, "_Any")
        else:
            written = class_rules.NAMES.get(x.arg) or rules.PARAMETERS.get(x.arg, "_Any")
        if written == "_Any" or written in ("_DType", "_Device"):
            return written
        if x.arg == "padding":
            written += " | _str"
        none = isinstance(default, ast.Constant) and default.value is None
        return f"{written} | None" if none else written


def _replace(given: ast.arguments, old: ast.expr, new: ast.expr) -> None:
    for values in (given.defaults, given.kw_defaults):
        for place, value in enumerate(values):
            if value is old:
                values[place] = new


_WHOLE = {"_tuple": "_tuple[_Any, ...]", "_dict": "_dict[_str, _Any]", "_list": "_list[_Any]",
          "_type": "_type[_Any]"}


def _written(annotation: ast.expr | None) -> str:
    if annotation is None:
        return "_Any"
    text = ast.unparse(_Annotations().visit(annotation))
    return _WHOLE.get(text, text)


def _assigned(node: ast.Assign) -> list[str]:
    """Declare what an assignment makes: aliases and type variables as they are."""
    value, names = node.value, []
    for target in node.targets:
        names += [x.id for x in ast.walk(target) if isinstance(x, ast.Name)]
    if names == ["__slots__"]:
        return []
    if names == ["__all__"] or isinstance(value, ast.Call) and ast.unparse(value.func) == "TypeVar":
        return [ast.unparse(node)]
    if isinstance(value, (ast.Name, ast.Attribute)) and ast.unparse(value) != "disabled":
        return [f"{name} = {ast.unparse(value)}" for name in names]
    kind = type(value.value).__name__ if isinstance(value, ast.Constant) else ""
    return [f"{name}: {_PLAIN.get(kind, '_Any')}" for name in names]


def _kept_values(node: ast.ClassDef) -> list[tuple[str, str]]:
    """Return the attributes that `__init__` sets to its arguments or to parameters."""
    made = [x for x in node.body if isinstance(x, ast.FunctionDef) and x.name == "__init__"]
    if not made:
        return []
    kinds = {x.arg: _written(x.annotation) for x in
             [*made[0].args.args, *made[0].args.kwonlyargs] if x.annotation is not None}
    found: dict[str, str] = {}
    for statement in ast.walk(made[0]):
        if not isinstance(statement, ast.Assign):
            continue
        for target in statement.targets:
            for name, value in _pairs(target, statement.value):
                found.setdefault(name, _kind_of(value, kinds))
    return [(name, kind) for name, kind in found.items() if kind]


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return [pair for t, v in zip(target.elts, value.elts) for pair in _pairs(t, v)]
    if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
        return [(target.attr, value)]
    return []


def _kind_of(value: ast.expr, kinds: dict[str, str]) -> str:
    if isinstance(value, ast.Name):
        found = kinds.get(value.id, "")
        return "" if "_Any" in found or "Device" in found or "DType" in found else found
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "Parameter":
        return "_Parameter"
    return ""
