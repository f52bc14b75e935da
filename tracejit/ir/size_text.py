"""Symbolic sizes as text: a Python expression.

In: the terms of a `Size`. Out: e.g. `4*s0*s1 + 1`. Called by `Size.__str__`, hence by everything
that prints.
"""

from __future__ import annotations

from typing import Any

_SIGNS = {"floordiv": "({} // {})", "mod": "({} % {})", "max": "max({}, {})", "min": "min({}, {})"}


class FrozenSize(tuple):
    """A Size inside an atom: compared by structure, printed by its text."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(self[1])  # which a text keeps; that of the structure would walk all of it

    def __str__(self) -> str:
        return self[1]

    __repr__ = __str__


def size_text(size: Any) -> str:
    """A Python expression, e.g. `4*s0*s1 + 1`."""
    parts = []
    for monomial, coefficient in sorted(size.terms.items(), key=lambda t: (-len(t[0]), str(t[0]))):
        atoms = [atom_text(a) for a in monomial]
        factors = ([] if abs(coefficient) == 1 and atoms else [str(abs(coefficient))]) + atoms
        sign = "-" if coefficient < 0 else "+"
        parts.append(f"{sign} {'*'.join(factors)}")
    text = " ".join(parts)
    return text[2:] if text.startswith("+ ") else "-" + text[2:]


def atom_text(atom: Any) -> str:
    """A symbol's name, or a function of sizes with its operands, e.g. `(s0 // 2)`."""
    return atom if isinstance(atom, str) else _SIGNS[atom[0]].format(*map(_operand, atom[1:]))


def _operand(frozen: Any) -> str:
    text = str(frozen)
    return f"({text})" if " " in text else text
