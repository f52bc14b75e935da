"""Expressions over runtime numbers, printed as straight-line Python.

In: runtime numbers and the questions asked about them; a function that says which variable holds
the number at a place. Out: lines for the guards' check (`guards.py`) and for what a replay
computes to write back (`number_reader.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tracejit.jit.capture.runtime_numbers import COMPARISONS, FUNCTIONS, INFIX, Question, is_runtime

_LONGEST = 60
_KINDS = {int: "an int", float: "a float"}


class NumberText:
    """Prints each expression once, into `lines`; constants go to the namespace `constants`."""

    def __init__(
        self, at: Callable[[Any], str], lines: list[str], constants: dict[str, Any]
    ) -> None:
        self.at, self.lines, self.constants = at, lines, constants
        self.known: dict[int, str] = {}
        self.literals: dict[tuple[type, str], str] = {}

    def of(self, operand: Any) -> str:
        """The variable, or the literal, that holds an operand."""
        if not is_runtime(operand):
            return self._literal(operand)
        pending = [operand]
        while pending:  # chains can be longer than Python's stack
            number = pending[-1]
            missing = [x for x in number.operands if is_runtime(x) and id(x) not in self.known]
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

    def fails(self, question: Question) -> str:
        """A condition that is true where the answer is another one now ("": lines suffice)."""
        variables = [self.of(x) for x in question.operands]
        first = variables[0]
        if question.what == "value":
            wanted, kind = self._literal(question.answer), type(question.answer).__name__
            same = f"{first} == {wanted}"
            if kind == "float" and (question.answer == 0 or question.answer != question.answer):
                same = f"repr({first}) == repr({wanted})"  # tells zeros apart, and nan is nan
            return f"not (type({first}) is {kind} and {same})"
        if question.what == "kind":
            return f"type({first}) is not {question.answer.__name__}"
        if question.what == "fits":
            return f"not -9223372036854775808 <= {first} <= 9223372036854775807"
        if question.what == "computed":
            return ""
        held = f"({first} {COMPARISONS[question.what]} {variables[1]})"
        return f"not {held}" if question.answer else held


class Asked(NamedTuple):
    """What was asked, in words: where guards name a place, it stands for an expression."""

    text: str


def asked_text(question: Question) -> tuple[Asked, str]:
    """What was asked, and the answer, in words."""
    texts = [number_text(x) for x in question.operands]
    if question.what in COMPARISONS:
        return Asked(f"{texts[0]} {COMPARISONS[question.what]} {texts[1]}"), f"{question.answer}"
    if question.what == "value":
        return Asked(texts[0]), f"== {question.answer!r}"
    return Asked(texts[0]), _KINDS.get(question.answer) or f"{question.what} int64"


def number_text(number: Any) -> str:
    """An expression as the user could have written it, cut where it gets long."""
    if not is_runtime(number):
        return repr(number)
    if number.op is None:
        return number.name
    known: dict[int, str] = {}
    pending = [number]
    while pending:
        top = pending[-1]
        missing = [x for x in top.operands if is_runtime(x) and id(x) not in known]
        if missing:
            pending.extend(missing)
            continue
        pending.pop()
        known[id(top)] = top.name if top.op is None else _cut(_applied(top, known))
    return known[id(number)]


def _applied(number: Any, known: dict[int, str]) -> str:
    parts = [known[id(x)] if is_runtime(x) else repr(x) for x in number.operands]
    nested = [
        f"({p})" if is_runtime(x) and x.op in INFIX else p for x, p in zip(number.operands, parts)
    ]
    if number.op in INFIX:
        return f"{nested[0]} {INFIX[number.op]} {nested[1]}"
    return f"{number.op}({', '.join(parts)})"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
