"""Code objects compared with the user's own, and named after them.

In: code compiled from source, and the code that a function runs. Out: True if they are the same
program; copies with the names that tracebacks, `__qualname__` and the watcher should see. Called by
`source.py`.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from types import CodeType
from typing import Any

from tracejit.jit.capture.instructions import steps

FUNCTION = "@function"  # name of the user's function while it is compiled
_MADE = {"@thunk", "@left"}  # parameters of the lambdas that rewriting makes
_REWRITTEN = {"@tracejit", "@bound"}
_COMPARED = ["co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_name"]
_COMPARED += ["co_qualname", "co_firstlineno", "co_argcount", "co_exceptiontable"]
_COMPARED += ["co_posonlyargcount", "co_kwonlyargcount"]
_SYNTHETIC = re.compile(r"@\w+\.<locals>\.")
_NESTED = inspect.CO_NESTED  # set for code inside a function, as all code compiled here


class Origin:
    """Last constant of a converted code object: the user's code."""

    __slots__ = ("code",)

    def __init__(self, code: CodeType) -> None:
        self.code = code


# Names


def relabelled(code: CodeType, original: CodeType) -> CodeType:
    """Return a copy of `code`, compiled from the tree of `original`, under the names of `original`.

    Code that was rewritten keeps the user's code as its last constant.
    """
    rewritten = not _REWRITTEN.isdisjoint(code.co_freevars)
    return _Labels(code.co_qualname, original.co_qualname).copy(code, original, rewritten)


def is_synthetic(code: CodeType) -> bool:
    """Return True if a code object is an inner function that rewriting made."""
    named = code.co_name.startswith("@") and code.co_name != FUNCTION
    return named or any(name in _MADE for name in code.co_varnames)


def _has_rewritten_body(code: CodeType) -> bool:
    """Return True if a code object in a rewritten function was rewritten itself.

    Class bodies and generator functions are not; generator expressions are.
    """
    suspends = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    lazy = code.co_flags & suspends
    return bool(code.co_flags & inspect.CO_OPTIMIZED) and (not lazy or code.co_name == "<genexpr>")


class _Labels:
    def __init__(self, made: str, original: str) -> None:
        self.made, self.original = made, original

    def text(self, name: str) -> str:
        if name.startswith(self.made):
            name = self.original + name[len(self.made) :]
        return _SYNTHETIC.sub("", name)

    def copy(self, code: CodeType, original: CodeType, rewritten: bool) -> CodeType:
        """Return a copy of code under the name of `original`, the user's code that it is or is part
        of."""
        rewritten = rewritten and _has_rewritten_body(code)
        constants = [self.constant(c, code, original, rewritten) for c in code.co_consts]
        if rewritten:
            constants.append(Origin(original))
        return code.replace(
            co_name=original.co_name,
            co_qualname=self.text(original.co_qualname),
            co_consts=tuple(constants),
        )

    def constant(
        self, constant: Any, code: CodeType, original: CodeType, rewritten: bool
    ) -> Any:
        if isinstance(constant, CodeType):
            return self.copy(constant, _counterpart(constant, original), rewritten)
        if isinstance(constant, str) and not code.co_flags & inspect.CO_OPTIMIZED:
            return self.text(constant)  # a class body names itself
        return constant


def _counterpart(code: CodeType, owner: CodeType) -> CodeType:
    """Return the user's code that a code object inside a rewritten function stands for."""
    if is_synthetic(code):
        return owner
    same = [c for c in owner.co_consts if isinstance(c, CodeType) and _named_alike(c, code)]
    place = _place(code)
    return next((c for c in same if _place(c) == place), same[0] if same else code)


def _named_alike(one: CodeType, other: CodeType) -> bool:
    return (one.co_name, one.co_firstlineno) == (other.co_name, other.co_firstlineno)


def _place(code: CodeType) -> tuple[int, int]:
    """Return where the text of a code object starts, which tells functions on one line apart."""
    places = [(p[0], p[2]) for p in code.co_positions() if p[0] and p[2] is not None and p[3]]
    return min(places, default=(0, 0))


# Comparing


def same_code(one: CodeType, other: CodeType) -> bool:
    """Return True if two code objects are the same program on the same lines."""
    if any(getattr(one, field) != getattr(other, field) for field in _COMPARED):
        return False
    if (one.co_flags ^ other.co_flags) & ~_NESTED or len(one.co_consts) != len(other.co_consts):
        return False
    if list(one.co_positions()) != list(other.co_positions()):
        return False
    return all(_same_constant(a, b) for a, b in zip(one.co_consts, other.co_consts))


def _same_constant(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, CodeType):
        return same_code(a, b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same_constant, a, b))
    if isinstance(a, frozenset):
        return sorted(map(repr, a)) == sorted(map(repr, b))
    return repr(a) == repr(b)  # tells 0.0 from -0.0


def same_but_asserts(one: CodeType, other: CodeType, tree: ast.AST) -> bool:
    """Return True if two code objects differ in assert statements only.

    pytest compiles those of test files to code that explains a failure.
    """
    if not any("@pytest_ar" in code.co_names for code in _with_inner(other)):
        return False
    asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    lines = {n for a in asserts for n in range(a.lineno, (a.end_lineno or a.lineno) + 1)}
    return _unlike_asserts(one, lines) == _unlike_asserts(other, lines)


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)


def _unlike_asserts(code: CodeType, lines: set[int]) -> list[Any]:
    """Return a code object's name, free names, count of arguments, and instructions outside
    `lines`."""
    found: list[Any] = [code.co_name, code.co_freevars, code.co_argcount]
    for step in steps(code):
        place = step.positions
        if place is None or place.lineno in lines:
            continue
        value: Any = None if "JUMP" in step.opname or step.opname == "FOR_ITER" else step.argval
        if isinstance(value, CodeType):
            value = _unlike_asserts(value, lines)
        found.append((step.opname, repr(value), place))
    return found
