"""Statements of stubs that no signature says: the decorators that compile.

In: nothing. Out: texts by module and name, which `stubs.py` puts in place of what it would write.
"""

from __future__ import annotations

import re

_SCRIPT = "dynamic: _bool | None = None, fullgraph: _bool = False, numerics: _str | None = None, " \
          "mode: _str | None = None"
_TRACE = "example_inputs: _Any = None, *, " + _SCRIPT + (
    ", check_trace: _bool = True, check_inputs: _Any = None, check_tolerance: _float = 1e-05, "
    "strict: _bool = True, example_kwarg_inputs: _dict[_str, _Any] | None = None")
_COMPILE = ("fullgraph: _bool = False, dynamic: _bool | None = None, "
            "backend: _Any = 'inductor', mode: _str | None = None, "
            "options: _dict[_str, _Any] | None = None, disable: _bool = False, "
            "numerics: _str | None = None")
_IMPORT = "from tracejit.jit.compiled_function import CompiledFunction as CompiledFunction"


def _overloads(name: str, first: str, rest: str, bound: str = "", bare: bool = True) -> str:
    """Declare a decorator: modules stay modules, functions become compiled functions.

    jedi takes the first overload that it cannot rule out. It gets two of its own, with both answers
    and without types of options, behind a test that type checkers know to be false.
    """
    rows = [("{first}: _M, {rest}", "_M"),
            ("{first}: _Callable[_P, _R], {rest}", "CompiledFunction[_P, _R]")]
    if bare and not bound:
        rows.append(("{first}: None = None, {rest}", "_Decorator"))
    untyped = re.sub(r": [^,=]*(?:\[[^]]*\])?[^,=]* =", " =", rest)
    lines = ["if sys.version_info[0] < 3:"]
    for row in [("{first}: _M, {rest}", "_M | CompiledFunction[..., _Any]"), *rows[2:]]:
        lines += [f"    {line}" for line in _statement(name, first, untyped, bound, row)]
    for row in rows:
        lines += _statement(name, first, rest, bound, row)
    return "\n".join(lines)


def _statement(name: str, first: str, rest: str, bound: str, row: tuple[str, str]) -> list[str]:
    text = row[0].format(first=first, rest=rest).removesuffix(", ")
    return ["@overload", f"def {name}({bound}{text}) -> {row[1]}: ..."]


_DECORATOR = _overloads("__call__", "fn_or_module", "/", "self, ").replace("\n", "\n    ")
_MODULES = '''\
class _Module(_Protocol):
    @property
    def _parameters(self) -> _Any: ...
    @property
    def forward(self) -> _Any: ...

_M = _TypeVar("_M", bound=_Module)
'''
PROTOCOLS = f'''\
{_MODULES}
class _Decorator(_Protocol):
    {_DECORATOR}
'''
STATEMENTS: dict[tuple[str, str], str] = {
    ("tracejit.jit", "script"):
        PROTOCOLS + _overloads("script", "fn_or_module", "*, " + _SCRIPT),
    ("tracejit.jit", "trace"): _overloads("trace", "fn", _TRACE),
    # again, as jedi takes no private name from another stub
    ("tracejit.compiler", "compile"): PROTOCOLS + _overloads("compile", "model", "*, " + _COMPILE),
    ("tracejit", "script"): "from tracejit.jit import script as script",
    ("tracejit", "compile"): "from tracejit.compiler import compile as compile",
    ("tracejit", "trace"):
        _MODULES + "@overload\ndef trace(input: Tensor) -> Tensor: ...\n"
        + _overloads("trace", "fn", _TRACE, bare=False),
}
for _module, _names in (("tracejit.jit", "export unused script_if_tracing script_method interface"),
                        ("tracejit.compiler", "allow_in_graph assume_constant_result")):
    for _name in _names.split():
        _first = "obj" if _name == "interface" else "fn"
        STATEMENTS[_module, _name] = f"def {_name}({_first}: _F) -> _F: ..."
IMPORTS: dict[str, list[str]] = {
    "tracejit.jit": ["import sys"],
    "tracejit.compiler": ["import sys", _IMPORT.replace(" as CompiledFunction", "")],
    "tracejit": ["import sys"],
}
