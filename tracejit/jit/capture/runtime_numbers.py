"""Arithmetic on numbers that differ between calls: expressions, and the guards on them.

In: roots (a number at a source) and Python operators on them, while a call is recorded. Out:
`SymEnv`, which shares equal expressions. It keeps, in order, the `SymGuard`s whose answers the
recorded program depends on. `number_text.py` prints both as Python, so that a replay computes
exactly what the plain function would: ints of any size, IEEE doubles (C2).
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tracejit.jit.capture.looking import is_exactly, is_stand_in

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "neg": operator.neg, "abs": abs, "invert": operator.invert, "round": round, "float": float,
    "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc,
}  # fmt: skip
OF_FLOATS: dict[Any, str] = {  # functions that make floats, of numbers alone
    getattr(math, name): name
    for name in "acos acosh asin asinh atan atan2 atanh cbrt copysign cos cosh degrees erf erfc "
    "exp exp2 expm1 fabs fmod gamma hypot lgamma log log10 log1p log2 radians sin sinh sqrt tan "
    "tanh".split()
} | {math.pow: "math_pow"}  # `pow` is Python's operator, which makes ints too
FUNCTIONS |= {name: function for function, name in OF_FLOATS.items()}
_SAFE = ("add", "sub", "mul", "neg", "abs", "and_", "or_", "xor", "invert")
_MAX_EXPRESSIONS = 4096
INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True)
class SymGuard:
    """Property of numbers that a program depends on, with the example's answer.

    `what`: the `value` of a number, its `kind`, that it can be `computed`, that it `fits` an int64;
    or a comparison of two operands.
    """

    what: str
    operands: tuple
    answer: Any = None


class SymEnv:
    """Runtime numbers of one recording."""

    def __init__(self, tracer: Any, make: Callable[..., Any]):
        self.tracer, self.make = tracer, make
        self.shared: dict[tuple, Any] = {}
        self.guards: dict[tuple, SymGuard] = {}
        self.stored: dict[tuple[int, Any], Any] = {}  # by container and key
        self.roots: list[Any] = []
        self.open = True

    def root(self, value: Any, source: Any) -> Any:
        """Make the number that was found at `source`; `value` is the example's."""
        number = self.make(self, value, source=source)
        self.roots.append(number)
        return number

    def item(self, container: Any, key: Any, value: Any, source: Any) -> Any:
        """Return the number for `container[key]`: the same object for the same value, `value`
        itself for another."""
        known = self.stored.get((id(container), key))
        if known is None:
            known = self.stored[id(container), key] = self.root(value, source)
            known.original = value
        return known if known.original is value else value

    def apply(self, op: str, operands: tuple) -> Any:
        """Apply `op` to numbers, runtime or plain. Raise what Python raises for the example."""
        hints = [x.hint if is_call_sym(x) else x for x in operands]
        if not self.open or len(self.shared) >= _MAX_EXPRESSIONS:
            return evaluate(op, self.concretize_all(operands))
        hint: Any = None
        with contextlib.suppress(ArithmeticError, TypeError, ValueError):  # raised again below
            hint = evaluate(op, hints)
        if not is_exactly(hint, (int, float)):
            return evaluate(op, self.concretize_all(operands))
        key = (op, *map(_identity, operands))
        known = self.shared.get(key)
        if known is None:
            known = self.shared[key] = self.make(self, hint, op=op, operands=operands)
            if op not in _SAFE or len({type(h) for h in hints}) > 1:
                self._note(SymGuard("computed", (known,)))
            if op == "pow":
                self._note(SymGuard("kind", (known,), type(hint)))
        return known

    def concretize_all(self, operands: tuple) -> list[Any]:
        """Return the operands as plain numbers, which are guarded."""
        return [x.concretize() if is_call_sym(x) else x for x in operands]

    def compare(self, op: str, left: Any, right: Any) -> bool:
        """Answer a comparison. The answer is guarded, not the numbers."""
        hints = [x.hint if is_call_sym(x) else x for x in (left, right)]
        answer = evaluate(op, hints)
        self._note(SymGuard(op, (left, right), answer))
        return answer

    def concretize(self, number: Any) -> Any:
        """Return the example's value, guarded."""
        self._note(SymGuard("value", (number,), number.hint))
        return number.hint

    def is_concretized(self, number: Any) -> bool:
        """Return True if the value of this number is guarded."""
        return ("value", id(number)) in self.guards

    def expression_guards(self) -> list[SymGuard]:
        """Return all guards except those on the value at a source, which is guarded like any other
        value."""
        return [
            q for q in self.guards.values() if q.what != "value" or q.operands[0].op is not None
        ]

    def fits(self, number: Any) -> bool:
        """Return True if an int can be an input of a program: it fits an int64, which a guard
        fixes."""
        if number.hint not in INT64:
            return False
        self._note(SymGuard("fits", (number,)))
        return True

    def _note(self, guard: SymGuard) -> None:
        if self.open:
            key = (guard.what, *map(_identity, guard.operands))
            self.guards.setdefault(key, guard)

    def close(self) -> None:
        """End the recording: its numbers are plain from now on and hold nothing."""
        self.open, self.tracer = False, None
        for number in (*self.shared.values(), *self.roots):
            number.operands, number.source, number.value = (), None, None
            number.original = None  # it may be the number itself, a cycle
        for kept in (self.shared, self.guards, self.stored, self.roots):
            kept.clear()


def is_call_sym(x: Any) -> bool:
    """Return True for a number of a recording that is evaluated on the host."""
    return is_stand_in(x) and getattr(type(x), "on_host", False)


def evaluate(op: str, operands: Any) -> Any:
    """Apply an operator to plain operands as Python does."""
    function = FUNCTIONS.get(op) or getattr(operator, op)
    return function(*operands)


def _identity(x: Any) -> Any:
    """Return a key that equal operands share. It tells -0.0 from 0.0 and 1 from 1.0; nan shares its
    own."""
    return id(x) if is_call_sym(x) else (type(x), repr(x))
