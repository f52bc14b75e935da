"""Stubs for editors and type checkers: `python -m tests.types.stubs` writes those of the package.

In: the package as it stands at run time. Out: `.pyi` files beside the modules whose functions are
made by decorators or loaded late. `tests/types/test_stubs.py` fails where they are out of date.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tracejit
from tests.types import rules
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
FIRST = '''\
# Written by `make stubs` from the records of ops and the public functions. Do not edit.
# mypy: disable-error-code="override,overload-overlap,misc,type-arg,assignment"
# mypy: disable-error-code="overload-cannot-match,no-redef,valid-type,attr-defined"
'''
TENSOR = "from tracejit.core.eager.tensor import Tensor as Tensor"
# Written by hand, for what no signature says.
BY_HAND = {
    "trace": '''\
@_overload
def trace(input: Tensor) -> Tensor: ...
@_overload
def trace(fn: _Callable[_P, _R], example_inputs: _Any = ..., *, dynamic: _bool | None = ...,
          fullgraph: _bool = ..., numerics: _str | None = ..., mode: _str | None = ...,
          check_trace: _bool = ..., check_inputs: _Any = ..., check_tolerance: _float = ...,
          strict: _bool = ..., example_kwarg_inputs: _dict[_str, _Any] | None = ...,
          ) -> CompiledFunction[_P, _R]: ...''',
    "vmap": "from tracejit.func import vmap as vmap",
    "compile": "from tracejit.compiler import compile as compile",
    "script": "from tracejit.jit import script as script",
    "no_recompile": "from tracejit.jit.compiled_function import no_recompile as no_recompile",
    "compare": "from tracejit.debug.compare import compare as compare",
    "save": "from tracejit.serialization import save as save",
    "load": "from tracejit.serialization import load as load",
}
FUNCTIONS = ("tracejit.nn.functional", "tracejit.linalg", "tracejit.fft", "tracejit.special")


def top_level() -> str:
    """Return the stub of `tracejit` itself."""
    notes, body, imports, modules = Annotations(), [], [], []
    writer = Writer("tracejit", notes)
    for name in sorted(public_names(tracejit)):
        value = getattr(tracejit, name)
        if isinstance(value, types.ModuleType):
            modules.append(f"from tracejit import {name} as {name}")
        elif name in BY_HAND:
            (imports if BY_HAND[name].startswith("from") else body).append(BY_HAND[name])
        elif isinstance(value, type):
            body.append(_class_line(name, value, imports))
        elif callable(value) and not isinstance(value, dtype):
            body += writer.lines(name, value)
        else:
            body.append(f"{name}: {_constant(name, value)}")
    body = [line for line in body if line]
    return _file(notes, ["__version__: _str", *body], [TENSOR, *imports, *modules])


def public_names(module: Any) -> Iterator[str]:
    """Yield the names that a module shows, without those it only uses itself."""
    for name in dir(module):
        value = getattr(module, name) if is_public(name) else None
        if value is None and name != "newaxis" or is_typing(value) or name == "annotations":
            continue
        foreign = isinstance(value, types.ModuleType) and not value.__name__.startswith("tracejit")
        if not foreign and not isinstance(value, type(importlib.import_module("__future__")
                                                      .annotations)):
            yield name


def _class_line(name: str, value: type, imports: list[str]) -> str:
    if type(value).__name__ == "TensorType":  # as annotations, the older names are all tensors
        return f"{name} = Tensor"
    if type(value).__name__ in ("StorageType", "AbsentType"):
        return f"{name}: _Any"
    if value is not tracejit.Tensor:
        imports.append(f"from {value.__module__} import {value.__name__} as {name}")
    return ""


def _constant(name: str, value: Any) -> str:
    if isinstance(value, dtype):
        return "_dtype"
    for kind, text in ((layout, "_layout"), (memory_format, "_memory_format"), (float, "_float"),
                       (tracejit.Generator, "_Generator"), (type(None), "None")):
        if isinstance(value, kind):
            return text
    return "_Any"


def functions_of(module: str) -> str:
    """Return the stub of a module of functions."""
    notes, body, imports = Annotations(), [], []
    room = importlib.import_module(module)
    writer = Writer(module, notes)
    for name in sorted(public_names(room)):
        value = getattr(room, name)
        if isinstance(value, type):
            imports.append(f"from {value.__module__} import {value.__name__} as {name}")
        elif callable(value):
            body += writer.lines(name, value)
    return _file(notes, body, [TENSOR, *imports])


def tensor() -> str:
    """Return the stub of `Tensor`: every operator, method and property."""
    notes, body = Annotations(), []
    writer = Writer("Tensor", notes)
    kind = tracejit.Tensor
    for name in sorted(set(dir(kind)) - _OF_OBJECT):
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


_OF_OBJECT = set("""__annotations__ __class__ __dict__ __dir__ __doc__ __getattribute__ __getstate__
__init__ __init_subclass__ __module__ __reduce__ __setattr__ __delattr__ __sizeof__ __slots__
__subclasshook__ __weakref__ __array_priority__""".split())


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
        "tracejit/__init__.pyi": top_level(),
        "tracejit/core/eager/tensor.pyi": tensor(),
        "tracejit/return_types.pyi": results(),
    }
    for module in FUNCTIONS:
        found[module.replace(".", "/") + ".pyi"] = functions_of(module)
    return found | class_stubs(ROOT)


def main() -> None:
    for path, text in all_stubs().items():
        (ROOT / path).write_text(text)
    print(f"{len(all_stubs())} stubs")


if __name__ == "__main__":
    sys.exit(main())
