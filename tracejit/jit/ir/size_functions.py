"""Functions of sizes that are no polynomials: quotients, remainders, the larger and the smaller.

In: a function's name and its two operands, ints or the key of a `SymInt`. Out: an atom of further
sizes, as a symbol's name is one. Equal ones are one object: sizes compare and hash their atoms all
the time, and functions of functions are deep. Called by `SymInt`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any
from weakref import WeakValueDictionary

from tracejit.core.memory import forks
from tracejit.jit.ir.size_text import size_text

Key = tuple  # ((monomial, coefficient), ...), in one order; a monomial is a tuple of atoms

_known: WeakValueDictionary[tuple, SizeFunction] = WeakValueDictionary()
_recent: deque[SizeFunction] = deque(maxlen=4096)  # which are not made again and again
_making = forks.rlock()


class SizeFunction:
    """`name` of two operands, made by `size_function`."""

    __slots__ = ("name", "operands", "text", "atoms", "__weakref__")

    def __init__(self, name: str, operands: tuple[Key | int, Key | int]):
        self.name, self.operands = name, operands
        texts = (str(x) if type(x) is int else size_text(x) for x in operands)
        self.text = f"({name!r}, {', '.join(texts)})"  # what orders atoms
        keys = (x for x in operands if not isinstance(x, int))
        self.atoms = atoms_in(monomial for key in keys for monomial, _ in key)

    def __repr__(self) -> str:
        return self.text


def size_function(name: str, left: Key | int, right: Key | int) -> SizeFunction:
    """Return the one atom that is this function of these operands.

    >>> half = size_function("floordiv", ((("s0",), 1),), 2)
    >>> half is size_function("floordiv", ((("s0",), 1),), 2), half
    (True, ('floordiv', s0, 2))
    """
    found = _known.get((name, left, right))
    if found is None:
        with _making:
            found = _known.get((name, left, right))
            if found is None:
                found = SizeFunction(name, (left, right))
                _known[name, left, right] = found
                _recent.append(found)
    return found


def atoms_in(monomials: Iterable[tuple[Any, ...]]) -> frozenset[Any]:
    """Return the atoms of some monomials, with those inside functions of sizes."""
    found = {atom for monomial in monomials for atom in monomial}
    for atom in list(found):
        if type(atom) is SizeFunction:
            found |= atom.atoms
    return frozenset(found)
