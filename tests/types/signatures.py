"""Signatures of public functions and methods as lines of a stub.

In: functions, methods and op records as they stand at run time. Out: text of `def` statements, and
the imports that their annotations need. Called by `stubs.py`.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

import tracejit
from tests.types import rules
from tracejit.core.ops import out as out_tables
from tracejit.core.ops.record import REGISTRY, Op

EMPTY = inspect.Parameter.empty
POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
KEYWORD = inspect.Parameter.KEYWORD_ONLY
VARIADIC = inspect.Parameter.VAR_POSITIONAL
NAMED = inspect.Parameter.VAR_KEYWORD
_BUILTIN = {kind: f"_{kind}" for kind in
            "bool bytes complex dict float int list object str tuple type".split()}
_KNOWN = {"Any": "_Any", "Callable": "_Callable", "Sequence": "_Sequence", "Iterator": "_Iterator",
          "NoReturn": "_NoReturn", "dtype": "_DType", "Tensor": "Tensor", "TensorState": "Tensor",
          "Size": "_Size", "Generator": "_Generator", "None": "None", "device": "_Device"}
_IN_FRONT = "input self A a x".split()  # what a method binds
_MANY_INTS = ("sizes", "order", "dims", "shape", "size", "args")
_OUT = {"tracejit": out_tables.TORCH, "tracejit.nn.functional": out_tables.FUNCTIONAL,
        "tracejit.linalg": out_tables.LINALG, "tracejit.fft": out_tables.FFT,
        "tracejit.special": out_tables.SPECIAL}  # fmt: skip


class Annotations:
    """Annotations of sources as a stub writes them, and the classes that it has to import."""

    def __init__(self) -> None:
        self.imports: set[str] = set()

    def text(self, annotation: Any, function: Any, result: bool = False) -> str:
        """Return an annotation in the stub's aliases; `_Any` where nothing is known."""
        if annotation is EMPTY or annotation is None:
            return "None" if annotation is None else "_Any"
        source = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        try:
            tree = ast.parse(source.replace("'", ""), mode="eval")
        except SyntaxError:
            return "_Any"
        scope = getattr(inspect.unwrap(function), "__globals__", {})
        known = _KNOWN | {"dtype": "_dtype", "device": "_device"} if result else _KNOWN
        return _complete(ast.unparse(_Renamed(self, scope, known).visit(tree)))

    def name_of(self, name: str, found: Any) -> str:
        if not isinstance(found, type) or not found.__module__.startswith("tracejit"):
            return "_Any"
        self.imports.add(f"from {found.__module__} import {found.__name__} as _{found.__name__}")
        return f"_{found.__name__}"


def _complete(text: str) -> str:
    """Say what is in a bare container."""
    return {"_tuple": "_tuple[_Any, ...]", "_dict": "_dict[_str, _Any]", "_list": "_list[_Any]",
            "_type": "_type[_Any]", "_Callable": "_Callable[..., _Any]"}.get(text, text)


class _Renamed(ast.NodeTransformer):
    def __init__(self, owner: Annotations, scope: dict[str, Any], known: dict[str, str]):
        self.owner, self.scope, self.known = owner, scope, known

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        text = ast.unparse(node)
        if text == "np.ndarray":
            return ast.Name("_Array")
        if node.attr in self.known and node.attr != "dtype":
            return ast.Name(self.known[node.attr])
        return ast.Name(self.owner.name_of(node.attr, _resolved(text, self.scope)))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        name = node.id
        if name in self.known:
            return ast.Name(self.known[name])
        if name in _BUILTIN:
            return ast.Name(_BUILTIN[name])
        return ast.Name(self.owner.name_of(name, self.scope.get(name)))


def _resolved(text: str, scope: dict[str, Any]) -> Any:
    first, *rest = text.split(".")
    found = scope.get(first)
    for name in rest:
        found = getattr(found, name, None)
    return found


def record_of(function: Any) -> Op | None:
    """Return the record behind a function or method, if it is one."""
    if isinstance(function, Op):
        return function
    if isinstance(function, types.FunctionType) and function.__code__.co_varnames[:3] == (
        "self", "operands", "attributes"):
        return REGISTRY.get(function.__name__) or _kept(function)
    return None


def _kept(function: types.FunctionType) -> Op | None:
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return next((found for found in cells if isinstance(found, Op)), None)


def parameters_of(function: Any, name: str, module: str) -> list[inspect.Parameter]:
    """Return the parameters as users know them: those of records and in-place twins, too."""
    record = record_of(function)
    if record is not None:
        found = [inspect.Parameter(operand, POSITIONAL) for operand in record.operands]
        return found if module == "Tensor" else [*found, _out()]
    found = list(inspect.signature(function).parameters.values())
    if [p.name for p in found][-2:] in (["arguments", "keywords"], ["arguments", "named"]):
        twin = _twin(name)
        if twin is not None:
            return parameters_of(*twin)
    found = [p for p in found if p.name != "_stacklevel"]
    if module != "Tensor" and name in _OUT.get(module, ()) and "out" not in {p.name for p in found}:
        found = _with_keyword(found, _out())
    return found


def _out() -> inspect.Parameter:
    return inspect.Parameter("out", KEYWORD, default=None)


def _with_keyword(found: list[inspect.Parameter], new: inspect.Parameter) -> list[Any]:
    last = [p for p in found if p.kind is NAMED]
    return [*(p for p in found if p.kind is not NAMED), new, *last]


def _twin(name: str) -> tuple[Any, str, str] | None:
    """Return the function whose arguments `name` passes on: `add` of `add_`, `t` of `t_copy`."""
    for ending in ("_copy", "_"):
        if name.endswith(ending):
            base = name.removesuffix(ending)
            for module, room in (("Tensor", tracejit.Tensor), ("Tensor", tracejit)):
                found = inspect.getattr_static(room, base, None)
                if callable(found):
                    return found, base, module
    return None


def _default(value: Any) -> str:
    plain = (builtins.bool, builtins.int, builtins.float, builtins.str, type(None))
    if isinstance(value, tuple) and all(type(x) in plain for x in value):
        return repr(value)
    if type(value) in plain and "inf" not in repr(value) and "nan" not in repr(value):
        return repr(value)
    return "..."


class Writer:
    """Writes the functions of one module, or the methods of `Tensor`, as a stub does."""

    def __init__(self, module: str, annotations: Annotations) -> None:
        self.module, self.annotations = module, annotations
        self.method = module == "Tensor"
        self.of_tensors = not module.startswith(("tracejit.jit", "tracejit.compiler"))

    def lines(self, name: str, function: Any, kind: str = "") -> list[str]:
        """Return the statements that declare a function."""
        given = rules.METHOD_OVERLOADS.get(name) if self.method else None
        given = given or rules.OVERLOADS.get(name)
        if given is not None and self.module in ("Tensor", "tracejit"):
            return self._overloads(name, [(self._own(text), result) for text, result in given])
        parameters = parameters_of(function, name, self.module)
        result = self._result(name, function)
        if self.method and kind != "static":
            parameters = parameters[1:]
        many = next((p for p in parameters if p.kind is VARIADIC and p.name in _MANY_INTS), None)
        twins = [p for p in parameters if p.name in ("size", "shape", "dims", "repeats", "dim")
                 and p is not many]
        if many is not None and (twins or name in ("sum_to_size",)):
            rest = [p for p in parameters if p not in (many, *twins)]
            first = [p for p in rest if p.kind is POSITIONAL]
            named = [p for p in rest if p.kind is not POSITIONAL]
            one = self._text(name, function, first, [f"*{many.name}: _int"], named)
            twin = twins[0].name if twins else many.name
            several = self._text(name, function, first, [f"{twin}: _Ints"], named, star=True)
            return self._overloads(name, [(one, result), (several, result)])
        text = self._text(name, function, parameters, [], [])
        decorators = {"static": ["@staticmethod"], "class": ["@classmethod"]}.get(kind, [])
        bound = {"static": "", "class": "cls"}.get(kind, "self") if self.method else ""
        return [*decorators, self._statement(name, bound, text, result)]

    def _own(self, text: str) -> str:
        if not self.method:
            return text.format(**rules.OUT)
        text = text.format(out="", only="", outs="")
        for first in ("input: Tensor, ", "input: Tensor"):
            text = text.removeprefix(first)
        return text

    def _overloads(self, name: str, given: Iterable[tuple[str, str]]) -> list[str]:
        bound = ("cls" if name == "__new__" else "self") if self.method else ""
        given = list(given)
        lines = [self._statement(name, bound, text, result) for text, result in given]
        if len(lines) == 1:
            return lines
        return [line for statement in lines for line in ("@overload", statement)]

    def _statement(self, name: str, bound: str, text: str, result: str) -> str:
        inside = ", ".join(part for part in (bound, text) if part)
        return f"def {name}({inside}) -> {result}: ..."

    def _text(self, name: str, function: Any, parameters: list[inspect.Parameter],
              middle: list[str], named: list[inspect.Parameter], star: bool = False) -> str:
        parts: list[str] = []
        starred = False
        for p in parameters:
            if p.kind is KEYWORD and not starred:
                parts.append("*")
                starred = True
            starred |= p.kind is VARIADIC
            parts.append(self._parameter(name, function, p))
        parts += middle
        if star and named and named[0].kind is KEYWORD:
            parts.append("*")
        return ", ".join(parts + [self._parameter(name, function, p) for p in named])

    def _parameter(self, name: str, function: Any, p: inspect.Parameter) -> str:
        written = self._annotation(name, function, p)
        if p.kind is VARIADIC:
            return f"*{p.name.lstrip('*')}: {written}"
        if p.kind is NAMED:
            return f"**{p.name}: {written}"
        if p.name.startswith("*"):
            return f"{p.name}: {written}"
        return f"{p.name}: {written}" + ("" if p.default is EMPTY else f" = {_default(p.default)}")

    def _annotation(self, name: str, function: Any, p: inspect.Parameter) -> str:
        bare = p.name.lstrip("*")
        place = rules.PLACES.get(f"{name}.{bare}")
        source = self.annotations.text(p.annotation, function)
        if bare == "out":
            return self._out_type(name)
        if place is not None:
            written = place
        elif record_of(function) is not None and bare in ("other", "n", "max", "min", "value"):
            written = "_Operand"
        elif self.of_tensors and "_Any" in source and not source.startswith("_Callable"):
            written = rules.PARAMETERS.get(bare, source)
            if source == "_Sequence[_Any]" and written == "_IntOrInts":
                written = "_Sequence[_int]"
        else:
            return source.replace("_DType | None", "_DType")
        if p.default is None and not written.startswith(("_Any", "_DType", "_Device")):
            written += " | None"
        return written

    def _out_type(self, name: str) -> str:
        result = self._result(name, None)
        if result == "Tensor":
            return "Tensor | None"
        return "_Sequence[Tensor] | None"

    def _result(self, name: str, function: Any) -> str:
        if inspect.isgeneratorfunction(inspect.unwrap(function)) and not self.method:
            return "_AbstractContextManager[None]"
        if name in rules.RESULTS:
            return rules.RESULTS[name]
        key = f"linalg_{name}" if self.module == "tracejit.linalg" else name
        if isinstance(inspect.getattr_static(tracejit.return_types, key, None), type):
            return f"_return_types.{key}"
        if name in ("slogdet", "triangular_solve"):
            return f"_return_types.{name}"
        if function is None or record_of(function) is not None:
            return "Tensor"
        annotation = inspect.signature(function).return_annotation
        source = self.annotations.text(annotation, function, result=True)
        if source == "_Any" or annotation is EMPTY:
            return "Tensor" if self.of_tensors else "_Any"
        if source == "_tuple[_Any, ...]":
            return "_tuple[Tensor, ...]"
        return source


def static_kind(raw: Any) -> str:
    return {staticmethod: "static", classmethod: "class"}.get(type(raw), "")


def is_public(name: str) -> bool:
    return not name.startswith("_")


def unwrapped(raw: Any) -> Callable[..., Any]:
    return raw.__func__ if isinstance(raw, (staticmethod, classmethod)) else raw


def is_typing(value: Any) -> bool:
    return value is typing.Any or getattr(value, "__module__", "") in ("typing", "collections.abc")
