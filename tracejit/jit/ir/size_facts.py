"""Facts that the terms of a symbolic size tell by themselves.

In: the terms of a size, often of a difference. Out: the sign, if it is certain, and the atoms that
the size could be solved for if it were 0. `ShapeEnv` calls it, decides and learns. `SymInt` asks
for the quotient of two sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Terms = dict[tuple[Any, ...], int]  # coefficients by monomial, a monomial being a tuple of atoms


def known_sign(terms: Terms, relation: str) -> bool | None:
    """Return True or False for `terms relation 0` if coefficients tell. Every symbol is >= 0."""
    if any(not isinstance(a, str) and "-" in str(a) for m in terms for a in m):
        return None  # an atom such as (s0 - 5) // 2 may be negative
    constant = terms.get((), 0)
    signs = {c > 0 for m, c in terms.items() if m}
    if len(signs) != 1:
        return None
    positive = signs.pop()
    if positive and constant >= 0 or not positive and constant <= 0:
        if relation == (">=" if positive else "<="):
            return True
        if relation == ("<" if positive else ">"):
            return False
        if constant != 0 and relation in ("==", "!=", ">", "<"):
            return relation == "!=" or relation == (">" if positive else "<")
    return None


def quotient(terms: Terms, divisor: Terms) -> Terms | None:
    """Return the polynomial that gives `terms` when multiplied by `divisor`, if there is one."""
    if len(divisor) == 1:
        return _by_monomial(terms, *next(iter(divisor.items())))

    def order(monomial: tuple[Any, ...]) -> tuple[int, list[str]]:
        return len(monomial), sorted(map(str, monomial))

    if not divisor:
        return None
    lead = max(divisor, key=order)
    rest, found = dict(terms), {}
    while rest:
        highest = max(rest, key=order)
        left = list(highest)
        for atom in lead:
            if atom not in left:
                return None
            left.remove(atom)
        if rest[highest] % divisor[lead]:
            return None
        factor = rest[highest] // divisor[lead]
        found[tuple(left)] = factor
        for m, c in divisor.items():
            monomial = tuple(sorted((*left, *m), key=str))
            rest[monomial] = rest.get(monomial, 0) - factor * c
            if not rest[monomial]:
                del rest[monomial]
    return found


def _by_monomial(terms: Terms, divisor: tuple[Any, ...], factor: int) -> Terms | None:
    found = {}
    for monomial, coefficient in terms.items():
        left = list(monomial)
        for atom in divisor:
            if atom not in left:
                return None
            left.remove(atom)
        if coefficient % factor:
            return None
        found[tuple(left)] = coefficient // factor
    return found


def factors_of_one(terms: Terms) -> list[str]:
    """Return the symbols that must be 1 because their product is 1 where `terms` are 0, or none."""
    products = [m for m in terms if m]
    if len(products) != 1 or terms[products[0]] != -terms.get((), 0):
        return []
    return list(products[0]) if all(isinstance(a, str) for a in products[0]) else []


def solvable(terms: Terms) -> Iterator[tuple[Any, int]]:
    """Atoms that stand alone in a term, with a coefficient of 1 or -1: symbols, then functions."""
    ordered = sorted(terms.items(), key=str, reverse=True)
    single = [(m[0], c) for m, c in ordered if len(m) == 1 and abs(c) == 1]
    yield from (found for found in single if isinstance(found[0], str))
    yield from (found for found in single if not isinstance(found[0], str))
