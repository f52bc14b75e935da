"""Conversion of a function to the same function with its control flow in sight of the tracer.

In: any function of the user's. Out: a function with the same globals, cells, defaults, attributes,
file and lines. A runtime object does its control flow, calls and changes (`rewrite.py` says how).
Or the function itself, if its source is not certain. Called by `script`, and by the runtime object
for the functions that are called.

Source is believed only when compiling it gives the code that the function runs.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import linecache
import os
import sysconfig
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from tracejit.core.memory import forks
from tracejit.jit.capture.location import REWRITTEN, is_internal_code
from tracejit.jit.capture.looking import is_a
from tracejit.jit.capture.rewrite import rewrite_function
from tracejit.jit.capture.rewrite_expressions import BOUND, RUNTIME
from tracejit.jit.capture.rewrite_names import Function
from tracejit.jit.capture.source_match import (
    FUNCTION,
    Origin,
    relabelled,
    same_but_asserts,
    same_code,
)
from tracejit.jit.capture.unwatched import unwatched

FACTORY = "@factory"
MAX_CODES, MAX_FILES = 2048, 16
_FUTURES = 0
for _name in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _name).compiler_flag
_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LIBRARY = tuple(sysconfig.get_path(kind) + os.sep for kind in ("stdlib", "platstdlib"))


@dataclass(frozen=True)
class Definition:
    """Function in a file, the class that its private names belong to, and the names that the file
    imports.

    Python compiles calls through an imported module's name in another way.
    """

    node: Function
    class_name: str | None
    imported: tuple[str, ...]


Index = dict[tuple[int, str], list[Definition]]
_lock = forks.rlock()
_codes: OrderedDict[int, tuple[CodeType, CodeType | None]] = OrderedDict()
_files: OrderedDict[str, tuple[list[str], Index]] = OrderedDict()


def convert(function: Any, runtime: object) -> Any:
    """Return the function with its control flow handed to `runtime`, or `function` itself.

    The result shares globals, closure cells, defaults and attributes with `function`. Builtins,
    classes and the standard library's functions come back as they are. So do tracejit's own (but
    those in `location.REWRITTEN`), generators, coroutines, functions that look at their frame
    (`locals()`) and those without dependable source.

    >>> convert(len, None) is len
    True
    """
    if is_a(function, MethodType):
        found = convert(function.__func__, runtime)
        return function if found is function.__func__ else MethodType(found, function.__self__)
    if not is_a(function, FunctionType):
        return function
    code = _converted_code(function)
    if code is None or code is function.__code__:
        return function
    return _with_code(function, code, runtime)


def is_understood(function: FunctionType) -> bool:
    """Return True if the function's source is known: then `convert` returns it only if nothing is
    to convert."""
    return _converted_code(function) is not None


def original_code(code: CodeType) -> CodeType:
    """Return the user's code that a converted code object, or one inside it, stands for."""
    last = code.co_consts[-1] if code.co_consts else None
    return last.code if isinstance(last, Origin) else code


def is_converted(code: CodeType) -> bool:
    """Return True if a code object was made by `convert`."""
    return bool(code.co_consts) and isinstance(code.co_consts[-1], Origin)


def nested_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code objects inside a code object, at any depth."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from nested_codes(constant)


def _with_code(function: FunctionType, code: CodeType, runtime: object) -> FunctionType:
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    cells |= {RUNTIME: CellType(runtime), BOUND: CellType(bound)}
    closure = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, closure
    )
    for attribute in _SHARED:
        setattr(made, attribute, getattr(function, attribute))
    return made


_SHARED = ["__kwdefaults__", "__qualname__", "__module__", "__doc__", "__annotations__", "__dict__"]
_SHARED += ["__type_params__"] if hasattr(FunctionType, "__type_params__") else []


def bound(read: Callable[[], Any], name: str) -> Any:
    """Return the value of a local name, read from an inner function; raise as the name's owner
    would."""
    with contextlib.suppress(NameError):
        return read()
    text = f"cannot access local variable '{name}' where it is not associated with a value"
    raise UnboundLocalError(text, name=name)


def _converted_code(function: FunctionType) -> CodeType | None:
    code = function.__code__
    known = _codes.get(id(code))
    if known is not None:
        return known[1]
    found = None if _left_alone(code) else unwatched(_compiled, function)
    with _lock:
        _codes[id(code)] = code, found
        while len(_codes) > MAX_CODES:
            _codes.popitem(last=False)
    return found


def _left_alone(code: CodeType) -> bool:
    if is_internal_code(code) and code.co_filename not in REWRITTEN or is_converted(code):
        return True
    installed = "site-packages" in code.co_filename or "dist-packages" in code.co_filename
    return code.co_filename.startswith(_LIBRARY) and not installed


def _compiled(function: FunctionType) -> CodeType | None:
    code = function.__code__
    try:
        found = _definition(function)
        if found is None:
            return None
        tree = rewrite_function(_copy(found.node), found.class_name)
        made = _compile(tree, found, code)
    except (RecursionError, SyntaxError):
        return None  # too deep for Python's own compiler
    if RUNTIME not in made.co_freevars:
        return code
    if not set(made.co_freevars) <= {
        *code.co_freevars,
        RUNTIME,
        BOUND,
    }:
        return None
    return relabelled(made, code)


def _copy(node: Any) -> Any:
    """Copy a syntax tree, since rewriting changes it in place."""
    if isinstance(node, list):
        return [_copy(item) for item in node]
    if not isinstance(node, ast.AST):
        return node
    made = type(node)(**{name: _copy(value) for name, value in ast.iter_fields(node)})
    return ast.copy_location(made, node)


# Finding the tree


def _definition(function: FunctionType) -> Definition | None:
    """Find the definition in the file that compiles to the function's code."""
    code = function.__code__
    for fresh in (False, True):
        index = _index(code, function.__globals__, fresh)
        for candidate in index.get((code.co_firstlineno, code.co_name), ()):
            if _is_source_of(candidate, code):
                return candidate
    return None


def is_left_unread(code: CodeType) -> bool:
    """Return True if `convert` tried a function with this code and could not read its source."""
    known = _codes.get(id(code))
    return known is not None and known[1] is None and not _left_alone(code)


def candidates(code: CodeType, names: dict[str, Any]) -> int:
    """Return the number of functions that begin where a code object says it does."""
    return len(_index(code, names, False).get((code.co_firstlineno, code.co_name), ()))


def _is_source_of(candidate: Definition, code: CodeType) -> bool:
    made = _compile(candidate.node, candidate, code)
    made = relabelled(made, code)
    return same_code(made, code) or same_but_asserts(made, code, candidate.node)


def _index(code: CodeType, names: dict[str, Any], fresh: bool) -> Index:
    """Return the functions in the file of a code object, by first line and name.

    `fresh`: look first if the file changed.
    """
    name = code.co_filename
    if fresh:
        linecache.checkcache(name)
    lines = linecache.getlines(name, names)
    known = _files.get(name)
    if known is not None and known[0] is lines:
        return known[1]
    index = _read("".join(lines))
    with _lock:
        _files[name] = lines, index
        while len(_files) > MAX_FILES:
            _files.popitem(last=False)
    return index


def _read(text: str) -> Index:
    index: Index = {}
    try:
        with _lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return index
    imported = tuple(_imported(tree))
    pending: list[tuple[ast.AST, str | None]] = [(tree, None)]
    while pending:
        node, class_name = pending.pop()
        if isinstance(node, ast.ClassDef):
            class_name = node.name
        elif isinstance(node, _DEFINED):
            key = _first_line(node), getattr(node, "name", "<lambda>")
            index.setdefault(key, []).append(Definition(node, class_name, imported))
        pending += [(child, class_name) for child in ast.iter_child_nodes(node)]
    return index


def _imported(tree: ast.Module) -> Iterator[str]:
    """Yield the names that imports of the module itself bind."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                if name != "*":
                    yield name
        elif not isinstance(node, _DEFINED) and not isinstance(node, ast.ClassDef):
            pending += ast.iter_child_nodes(node)


def _first_line(node: Function) -> int:
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])


# Compiling it where its names mean the same


def _compile(node: Function, found: Definition, code: CodeType) -> CodeType:
    """Compile one function inside functions and a class that give its names the meaning they had.

    Free names become parameters of a factory.
    """
    statement, class_name = _bare(node), found.class_name
    if class_name is not None:
        statement = ast.ClassDef(class_name, [], [], [statement], [], **_UNTYPED)
    free = [name for name in code.co_freevars if name != "__class__" or class_name is None]
    arguments = ast.arguments(
        [], [ast.arg(n) for n in [*free, RUNTIME, BOUND]], None, [], [], None, []
    )
    hidden = [ast.Global([class_name])] if class_name and class_name not in free else []
    factory = ast.FunctionDef(FACTORY, arguments, [*hidden, statement], [], **_UNTYPED)
    imports: list[ast.stmt] = [ast.Import([ast.alias(name)]) for name in found.imported]
    module = ast.Module([*imports, ast.copy_location(factory, node)], [])
    ast.fix_missing_locations(module)
    flags = code.co_flags & _FUTURES
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python gave the warnings when it compiled the user's file
        made = compile(module, code.co_filename, "exec", flags, dont_inherit=True)
    return next(c for c in nested_codes(made) if c.co_name in (FUNCTION, "<lambda>"))


_UNTYPED: dict[str, Any] = {"type_params": []} if hasattr(ast, "TypeAlias") else {}


def _bare(node: Function) -> ast.stmt:
    """Return the function without the parts evaluated outside it: defaults, annotations,
    decorators."""
    old = node.args
    arguments = ast.arguments(
        posonlyargs=[_bare_arg(a) for a in old.posonlyargs],
        args=[_bare_arg(a) for a in old.args],
        vararg=old.vararg and _bare_arg(old.vararg),
        kwonlyargs=[_bare_arg(a) for a in old.kwonlyargs],
        kw_defaults=[None] * len(old.kwonlyargs),
        kwarg=old.kwarg and _bare_arg(old.kwarg),
        defaults=[],
    )
    if isinstance(node, ast.Lambda):
        return ast.copy_location(
            ast.Expr(ast.copy_location(ast.Lambda(arguments, node.body), node)), node
        )
    # A decorator moves the first line of the code to its own.
    first = ast.copy_location(ast.Constant(None), node)
    first.lineno = _first_line(node)
    kind = type(node)
    made = kind(FUNCTION, arguments, node.body, [first] if node.decorator_list else [], **_UNTYPED)
    return ast.copy_location(made, node)


def _bare_arg(argument: ast.arg) -> ast.arg:
    return ast.copy_location(ast.arg(argument.arg), argument)
