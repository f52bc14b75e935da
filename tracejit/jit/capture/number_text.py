"""Expressions over runtime numbers, printed as straight-line Python.

In: runtime numbers and the guards on them; a function that names the variable of a root. Out: lines
for the guards' check (`guards.py`) and for the numbers that a replay writes back
(`number_reader.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tracejit.jit.capture.runtime_numbers import (
    COMPARISONS,
    FUNCTIONS,
    INFIX,
    SymGuard,
    is_call_sym,
)

_LONGEST = 60
_KINDS = {int: "an int", float: "a float"}


class NumberText:
    """Printer of expressions: each once, into `lines`; constants go to the namespace `constants`.

    `at`: returns the variable that holds a root, a number read from its source.
    """

    def __init__(
        self, at: Callable[[Any], str], lines: list[str], constants: dict[str, Any]
    ) -> None:
        self.at, self.lines, self.constants = at, lines, constants
        self.known: dict[int, str] = {}
        self.literals: dict[tuple[type, str], str] = {}

    def of(self, operand: Any) -> str:
        """Return the variable that holds an operand, after lines that compute it."""
        if not is_call_sym(operand):
            return self._literal(operand)
        pending = [operand]
        while pending:  # chains can be longer than Python's stack
            number = pending[-1]
            missing = [x for x in number.operands if is_call_sym(x) and id(x) not in self.known]
            if id(number) in self.known or not missing:
                pending.pop()
                self._line(number)
            pending.extend(missing)
        return self.known[id(operand)]

    def _line(self, number: Any) -> None:
        if id(number) in self.known:
            return
        if number.op is None:
            self.known[id(number)] = self.at(number)
            return
        name = self.known[id(number)] = f"n{len(self.known)}"
        parts = [self.known.get(id(x)) or self._literal(x) for x in number.operands]
        if number.op in INFIX:
            text = f"{parts[0]} {INFIX[number.op]} {parts[1]}"
        else:
            self.constants[f"do_{number.op}"] = FUNCTIONS[number.op]
            text = f"do_{number.op}({', '.join(parts)})"
        self.lines.append(f"{name} = {text}")

    def _literal(self, number: Any) -> str:
        kind = (type(number), repr(number))
        name = self.literals.get(kind)
        if name is None:
            name = self.literals[kind] = f"k{len(self.constants)}"
            self.constants[name] = number
        return name

    def fails(self, guard: SymGuard) -> str:
        """Return a condition that is true if the guard fails now; "" if its lines suffice, which
        raise then."""
        variables = [self.of(x) for x in guard.operands]
        first = variables[0]
        if guard.what == "value":
            wanted, kind = self._literal(guard.answer), type(guard.answer).__name__
            same = f"{first} == {wanted}"
            if kind == "float" and (guard.answer == 0 or guard.answer != guard.answer):
                same = f"repr({first}) == repr({wanted})"  # tells zeros apart, and nan is nan
            return f"not (type({first}) is {kind} and {same})"
        if guard.what == "kind":
            return f"type({first}) is not {guard.answer.__name__}"
        if guard.what == "fits":
            return f"not -9223372036854775808 <= {first} <= 9223372036854775807"
        if guard.what == "computed":
            return ""
        held = f"({first} {COMPARISONS[guard.what]} {variables[1]})"
        return f"not {held}" if guard.answer else held


class Asked(NamedTuple):
    """Question about numbers in words. Where texts of guards name a source, it stands for an
    expression."""

    text: str


def asked_text(guard: SymGuard) -> tuple[Asked, str]:
    """Return a guard's question, and its answer, in words."""
    texts = [number_text(x) for x in guard.operands]
    if guard.what in COMPARISONS:
        return Asked(f"{texts[0]} {COMPARISONS[guard.what]} {texts[1]}"), f"{guard.answer}"
    if guard.what == "value":
        return Asked(texts[0]), f"== {guard.answer!r}"
    return Asked(texts[0]), _KINDS.get(guard.answer) or f"{guard.what} int64"


def number_text(number: Any) -> str:
    """Return an expression as the user could have written it; long parts are cut."""
    if not is_call_sym(number):
        return repr(number)
    if number.op is None:
        return number.name
    known: dict[int, str] = {}
    pending = [number]
    while pending:
        top = pending[-1]
        missing = [x for x in top.operands if is_call_sym(x) and id(x) not in known]
        if missing:
            pending.extend(missing)
            continue
        pending.pop()
        known[id(top)] = top.name if top.op is None else _cut(_applied(top, known))
    return known[id(number)]


def _applied(number: Any, known: dict[int, str]) -> str:
    parts = [known[id(x)] if is_call_sym(x) else repr(x) for x in number.operands]
    nested = [
        f"({p})" if is_call_sym(x) and x.op in INFIX else p for x, p in zip(number.operands, parts)
    ]
    if number.op in INFIX:
        return f"{nested[0]} {INFIX[number.op]} {nested[1]}"
    return f"{number.op}({', '.join(parts)})"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
