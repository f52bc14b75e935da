"""Symbolic sizes as text: a Python expression.

In: the key of a `SymInt`: its terms, in one order. Out: e.g. `4*s0*s1 + 1`. Called by
`SymInt.__str__`, hence by everything that prints.
"""

from __future__ import annotations

from typing import Any

_SIGNS = {"floordiv": "({} // {})", "mod": "({} % {})", "max": "max({}, {})", "min": "min({}, {})"}


def size_text(key: Any) -> str:
    """Return a Python expression, e.g. `4*s0*s1 + 1`."""
    parts = []
    for monomial, coefficient in sorted(key, key=lambda t: (-len(t[0]), str(t[0]))):
        atoms = [atom_text(a) for a in monomial]
        factors = ([] if abs(coefficient) == 1 and atoms else [str(abs(coefficient))]) + atoms
        sign = "-" if coefficient < 0 else "+"
        parts.append(f"{sign} {'*'.join(factors)}")
    text = " ".join(parts)
    return text[2:] if text.startswith("+ ") else "-" + text[2:]


def atom_text(atom: Any) -> str:
    """Return a symbol's name, or a function of sizes with its operands, e.g. `(s0 // 2)`."""
    if isinstance(atom, str):
        return atom
    return _SIGNS[atom.name].format(*map(_operand, atom.operands))


def _operand(operand: Any) -> str:
    text = str(operand) if type(operand) is int else size_text(operand)
    return f"({text})" if " " in text else text
