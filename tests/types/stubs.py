"""Stubs for editors and type checkers: `python -m tests.types.stubs` writes those of the package.

In: the package as it stands at run time. Out: `.pyi` files beside the modules whose functions are
made by decorators or loaded late. `tests/types/test_stubs.py` fails where they are out of date.
"""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import tracejit
from tests.types import by_hand, rules
from tests.types.class_stubs import class_stubs
from tests.types.signatures import (
    Annotations,
    Writer,
    is_public,
    is_typing,
    static_kind,
    unwrapped,
)
from tracejit.core.eager.metadata import layout, memory_format
from tracejit.core.ops.types import dtype

ROOT = Path(__file__).resolve().parents[2]
# Modules whose own annotations say more than a signature does here.
TYPED = ("tracejit.jit.compiled_function", "tracejit.debug.compare", "tracejit.serialization",
         "tracejit.func.vmap", "tracejit.nn.attention_function")
FIRST = '''\
# Written by `make stubs` from the records of ops and the public functions. Do not edit.
# mypy: disable-error-code="override,overload-overlap,misc,type-arg,assignment"
# mypy: disable-error-code="overload-cannot-match,no-redef,valid-type,attr-defined"
'''
TENSOR = "from tracejit.core.eager.tensor import Tensor as Tensor"
FUNCTIONS = ("tracejit.nn.functional", "tracejit.linalg", "tracejit.fft", "tracejit.special",
             "tracejit.jit", "tracejit.compiler")


def module_stub(module: str) -> str:
    """Return the stub of a module of functions; classes come from where they are written."""
    notes, body, imports = Annotations(), [], [TENSOR, *by_hand.IMPORTS.get(module, [])]
    room = importlib.import_module(module)
    writer = Writer(module, notes)
    for name in sorted(public_names(room)):
        value = getattr(room, name)
        given = by_hand.STATEMENTS.get((module, name))
        if given is not None:
            (imports if given.startswith("from ") else body).append(given)
        elif isinstance(value, types.ModuleType):
            if module == "tracejit" or value.__name__ == f"{module}.{name}":
                imports.append(f"from {module} import {name} as {name}")
        elif isinstance(value, type):
            body += _class_line(name, value, imports)
        elif callable(value) and not isinstance(value, dtype):
            body += _function(module, name, value, writer, imports)
        else:
            body.append(f"{name}: {_constant(value)}")
    if module == "tracejit":
        body.insert(0, "__version__: _str")
    return _file(notes, body, imports)


def _function(module: str, name: str, value: Any, writer: Writer, imports: list[str]) -> list[str]:
    """Declare a function; one that is not made by decorators is taken from its own file."""
    home = inspect.unwrap(value).__module__ if inspect.isfunction(value) else ""
    if home and home != module and not home.startswith("tracejit.core") and home in TYPED:
        imports.append(f"from {home} import {value.__name__} as {name}")
        return []
    return writer.lines(name, value)


@cache
def _fresh_names(module: str) -> list[str]:
    """Return what a module shows right after its import: later ones add submodules."""
    code = f"import {module} as m; print(*dir(m))"
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, text=True,
                          capture_output=True).stdout.split()


def public_names(module: Any) -> Iterator[str]:
    """Yield the names that a module shows, without those it only uses itself."""
    names = getattr(module, "__all__", dir(module))
    if module in (tracejit, tracejit.jit):
        names = _fresh_names(module.__name__)
    for name in names:
        value = getattr(module, name) if is_public(name) else None
        if value is None and name != "newaxis" or is_typing(value) or name == "annotations":
            continue
        foreign = isinstance(value, types.ModuleType) and not value.__name__.startswith("tracejit")
        if not foreign and not isinstance(value, type(importlib.import_module("__future__")
                                                      .annotations)):
            yield name


def _class_line(name: str, value: type, imports: list[str]) -> list[str]:
    if type(value).__name__ == "TensorType":  # as annotations, the older names are all tensors
        return [f"{name} = Tensor"]
    if type(value).__name__ in ("StorageType", "AbsentType"):
        return [f"{name}: _Any"]
    if value is not tracejit.Tensor:
        imports.append(f"from {value.__module__} import {value.__name__} as {name}")
    return []


def _constant(value: Any) -> str:
    if isinstance(value, dtype):
        return "_dtype"
    for kind, text in ((layout, "_layout"), (memory_format, "_memory_format"), (float, "_float"),
                       (tracejit.Generator, "_Generator"), (type(None), "None")):
        if isinstance(value, kind):
            return text
    return "_Any"


def tensor() -> str:
    """Return the stub of `Tensor`: every operator, method and property."""
    notes, body = Annotations(), []
    writer = Writer("Tensor", notes)
    kind = tracejit.Tensor
    for name in sorted(set(dir(kind)) - OF_OBJECT):
        raw = inspect.getattr_static(kind, name)
        if isinstance(raw, property):
            body += _property(name, raw, notes)
        elif type(raw) is types.MemberDescriptorType:
            body.append(f"{name}: {rules.PROPERTIES.get(name, '_Any')}")
        elif name in ("__torch_function__", "_make_subclass") or not is_public(name) and not (
            name.startswith("__")):
            body.append(f"{name}: _Any")
        elif callable(unwrapped(raw)) and not isinstance(raw, type):
            body += writer.lines(name, unwrapped(raw), static_kind(raw))
    body = ["__getattr__: None  # not that of TensorState, which knows any name", *body]
    state = "from tracejit.core.eager.state import TensorState as _TensorState"
    lines = ["class Tensor(_TensorState):", *(f"    {line}" for line in body)]
    return _file(notes, lines, [state], home=True)


OF_OBJECT = set("""__annotations__ __class__ __dict__ __dir__ __doc__ __getattribute__ __getstate__
__init__ __init_subclass__ __module__ __reduce__ __setattr__ __delattr__ __sizeof__ __slots__
__subclasshook__ __weakref__ __array_priority__ __firstlineno__ __static_attributes__""".split())


def _property(name: str, raw: property, notes: Annotations) -> list[str]:
    found = rules.PROPERTIES.get(name)
    if found is None:
        getter = raw.fget
        given = getattr(getter, "__annotations__", {}).get("return", inspect.Parameter.empty)
        found = notes.text(given, getter, result=True)
    if raw.fset is not None:
        return [f"{name}: {found}"]
    return ["@property", f"def {name}(self) -> {found}: ..."]


def results() -> str:
    """Return the stub of the named tuples that functions give."""
    lines = []
    for name in sorted(vars(tracejit.return_types)):
        fields = getattr(getattr(tracejit.return_types, name), "_fields", None)
        if fields is not None:
            lines += [f"class {name}(_NamedTuple):", *(f"    {field}: _Tensor" for field in fields)]
    return _file(Annotations(), lines, ["from tracejit.core.eager.tensor import Tensor as _Tensor"])


def _file(notes: Annotations, body: list[str], imports: list[str], home: bool = False) -> str:
    text = rules.with_imports("\n".join(body), [*sorted(notes.imports), *imports], home)
    return f"{FIRST}\n{text}"


def all_stubs() -> dict[str, str]:
    """Return the text of every stub by its path in the repository."""
    found = {
        "tracejit/__init__.pyi": module_stub("tracejit"),
        "tracejit/core/eager/tensor.pyi": tensor(),
        "tracejit/return_types.pyi": results(),
    }
    for module in FUNCTIONS:
        package = "/__init__" if module == "tracejit.jit" else ""
        found[module.replace(".", "/") + package + ".pyi"] = module_stub(module)
    return found | class_stubs(ROOT)


def main() -> None:
    for path, text in all_stubs().items():
        (ROOT / path).write_text(text)
    print(f"{len(all_stubs())} stubs")


if __name__ == "__main__":
    sys.exit(main())
