"""Stubs against the package: the same names, the same parameters, true results.

`make stubs` writes them. An op that was added without it fails here.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tracejit
from tests.opinfo import OpInfo, convert, rows
from tests.ops.test_opinfo import samples
from tests.types import stubs
from tests.types.signatures import record_of

ROOT = Path(__file__).resolve().parents[2]
TENSOR = ROOT / "tracejit/core/eager/tensor.pyi"
# Public functions of the package that no function's signature describes.
_PASSED_ON = {"arguments", "keywords", "named", "kwargs", "args", "operands", "attributes", "given"}


def stub_of(module: str) -> Path:
    path = ROOT / module.replace(".", "/")
    return path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")


@cache
def functions(path: Path) -> dict[str, list[ast.FunctionDef]]:
    """Functions of a stub, or methods of `Tensor`, with their overloads."""
    body = ast.parse(path.read_text()).body
    if path == TENSOR:
        body = next(node.body for node in body if isinstance(node, ast.ClassDef))
    found = defaultdict(list)
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found[node.name].append(node)
    return found


def public(path: Path) -> set[str]:
    """Names that a stub shows: definitions, and imports of the form `x as x`."""
    body = ast.parse(path.read_text()).body
    if path == TENSOR:
        body = next(node.body for node in body if isinstance(node, ast.ClassDef))
    names: set[str] = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(ast.unparse(node.target))
        elif isinstance(node, ast.Assign):
            names |= {ast.unparse(target) for target in node.targets}
        elif isinstance(node, ast.ImportFrom):
            names |= {x.asname for x in node.names if x.asname and x.asname == x.name}
            names |= {x.asname for x in node.names if x.asname and not x.asname.startswith("_")}
    return {name for name in names if not name.startswith("_")}


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    """Stubs as a fresh process writes them: other tests make more names known."""
    told = subprocess.run(
        [sys.executable, "-c", "import json; from tests.types import stubs; "
         "print(json.dumps(stubs.all_stubs()))"],
        cwd=ROOT, text=True, capture_output=True, check=True)  # fmt: skip
    return json.loads(told.stdout)


def test_the_stubs_are_those_that_make_stubs_writes(written: dict[str, str]) -> None:
    old = [path for path, text in written.items()
           if not (ROOT / path).exists() or (ROOT / path).read_text() != text]
    assert old == [], "out of date: run `make stubs`"


def test_every_stub_of_the_package_is_written_by_make_stubs(written: dict[str, str]) -> None:
    found = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tracejit").rglob("*.pyi")}
    assert found == set(written)


@pytest.mark.parametrize("module", ["tracejit", *stubs.FUNCTIONS])
def test_a_stub_has_the_names_of_its_module(module: str) -> None:
    room = importlib.import_module(module)
    there, declared = set(stubs.public_names(room)), public(stub_of(module))
    local = {name for name in there - declared
             if inspect.ismodule(getattr(room, name)) and module != "tracejit"}
    assert sorted(there - declared - local) == [], "not in the stub"
    assert sorted(name for name in declared - there if name != "Tensor") == [], "not in the module"


def test_the_stub_of_tensor_has_its_names() -> None:
    there = {name for name in dir(tracejit.Tensor) if not name.startswith("_")}
    assert there == public(TENSOR)


def test_operators_are_in_the_stub_of_tensor() -> None:
    there = {name for name in dir(tracejit.Tensor) if name.startswith("__")} - stubs.OF_OBJECT
    declared = set(functions(TENSOR)) | {"__torch_function__"}
    assert sorted(there - declared) == []


def _names(nodes: list[ast.FunctionDef]) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        given = node.args
        every = [*given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        found |= {x.arg for x in every if x is not None}
    return found


def _shape(node: ast.FunctionDef) -> list[tuple[str, bool]]:
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    required = len(plain) - len(given.defaults)
    found = [(x.arg, k >= required) for k, x in enumerate(plain)]
    found += [(x.arg, d is not None) for x, d in zip(given.kwonlyargs, given.kw_defaults)]
    return found


def _callables(module: str) -> list[tuple[str, Any]]:
    if module == "Tensor":
        kinds = [(name, inspect.getattr_static(tracejit.Tensor, name)) for name in
                 functions(TENSOR)]
        return [(name, getattr(f, "__func__", f)) for name, f in kinds
                if not isinstance(f, property)]
    room = importlib.import_module(module)
    return [(name, getattr(room, name)) for name in functions(stub_of(module))
            if not name.startswith("_")]


@pytest.mark.parametrize("module", ["tracejit", "Tensor", *stubs.FUNCTIONS])
def test_functions_have_the_parameters_of_the_package(module: str) -> None:
    """Parameters by name; those of single statements also by order and by what may be left out."""
    declared = functions(TENSOR if module == "Tensor" else stub_of(module))
    wrong = {}
    for name, function in _callables(module):
        record = record_of(function)
        if record is not None:
            there = {operand.lstrip("*") for operand in record.operands}
            first = record.operands[0] if module == "Tensor" else ""
        else:
            parameters = inspect.signature(function).parameters
            there, first = set(parameters), next(iter(parameters), "")
            if len(declared[name]) > 1:  # overloads spell out what the star takes
                there -= {p.name for p in parameters.values() if p.kind is p.VAR_POSITIONAL}
        if there & _PASSED_ON or name == "detach":
            continue
        bound = module == "Tensor" and name not in STATIC
        there -= {"_stacklevel"} | ({first} if bound else set())
        if len(declared[name]) > 1:
            declared_stars = {x.args.vararg.arg for x in declared[name] if x.args.vararg}
        else:
            declared_stars = set()
        found = _names(declared[name]) - declared_stars - ({"self"} if bound else set())
        if "out" not in there:
            found -= {"out"}
        if found != there:
            wrong[name] = (sorted(found - there), sorted(there - found))
        elif len(declared[name]) == 1 and record is None and module != "Tensor":
            given = [(p.name, p.default is not p.empty) for p in parameters.values()
                     if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.name != "_stacklevel"]
            shown = [x for x in _shape(declared[name][0]) if x[0] != "out" or "out" in parameters]
            if given != shown:
                wrong[name] = (shown, given)
    assert wrong == {}


STATIC = {name for name in dir(tracejit.Tensor)
          if isinstance(inspect.getattr_static(tracejit.Tensor, name), staticmethod)}


def _is(result: Any, annotation: str) -> bool:
    """Return True if a result is of the type that a stub says."""
    if annotation in ("_Any", "Tensor | _Any"):
        return True
    if annotation == "Tensor":
        return isinstance(result, tracejit.Tensor)
    if annotation.startswith("_return_types."):
        kind = getattr(tracejit.return_types, annotation.removeprefix("_return_types."))
        return isinstance(result, kind)
    if annotation.startswith("_tuple[Tensor"):
        count = annotation.count("Tensor")
        return isinstance(result, tuple) and (annotation.endswith("...]") or len(result) == count)
    kinds = {"_bool": bool, "_int": int, "_float": float, "_str": str, "None": type(None),
             "_dtype": tracejit.dtype, "_list[_Any]": list, "_Size": tracejit.Size}
    return type(result) is kinds[annotation]


def _rooms(name: str) -> tuple[Any, list[ast.FunctionDef]] | None:
    module, _, last = f"tracejit.{name}".rpartition(".")
    if module not in ("tracejit", *stubs.FUNCTIONS):
        return None
    found = functions(stub_of(module)).get(last)
    return (getattr(importlib.import_module(module), last), found) if found else None


_ROWS = [row for row in rows() if row.function is None and _rooms(row.name.split(".")[0])]


@pytest.mark.parametrize("row", _ROWS, ids=repr)
def test_results_are_what_the_stub_says(row: OpInfo) -> None:
    function, declared = _rooms(row.name.split(".")[0])  # type: ignore[misc]
    said = {ast.unparse(node.returns) for node in declared if node.returns is not None}
    for sample in samples(row, row.dtypes[0])[:2]:
        args = convert(sample.args, tracejit.tensor, lambda kind: kind)
        kwargs = convert(sample.kwargs, tracejit.tensor, lambda kind: kind)
        result = function(*args, **kwargs)
        assert any(_is(result, text) for text in said), (type(result), said)
