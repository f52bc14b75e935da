"""Scalar expressions of one kernel: a graph of typed values, each stored once.

In: constants, loads, templates of ops, index expressions, folds. Out: `Scalar`s. Equal expressions
are one object, so that a value that several outputs share is computed once. Built by `emit.py`,
laid out in loops by `loops.py`, written as text by `printing.py`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from tracejit.core.ops.types import dtype
from tracejit.jit.ir.graph import Location
from tracejit.jit.ir.sizes import SizeLike
from tracejit.jit.lowering.index import Condition, Index, Quotient, Read, Variable, size_key

# What a value of a dtype is in a register; halves compute in float32 and are rounded.
REGISTERS = {"float16": "float32", "bfloat16": "float32"}


def register(d: dtype) -> str:
    """Return the type a kernel computes in for elements of `d`."""
    return REGISTERS.get(d.name, d.name)


class Scalar:
    """Typed value. Its kind says what `args` and `data` hold:

    - load (data: leaf, Index), number (value), call (template of {0} {1} ...)
    - index (Index), condition (Condition), fold (args: body; data: Fold)
    - choice (args: condition, yes, no; only the one taken is computed)
    - checked (args: index; data: size, message, wrap)
    - after (args: what it is, what is computed before because it may fail)
    """

    __slots__ = ("kind", "dtype", "args", "data", "number", "variables", "location")

    def __init__(
        self,
        kind: str,
        dtype: str,
        args: tuple[Scalar, ...],
        data: Any,
        number: int,
        variables: frozenset[str],
    ):
        self.kind, self.dtype, self.args, self.data = kind, dtype, args, data
        self.number, self.variables = number, variables
        self.location: Location | None = None

    @property
    def key(self) -> int:
        return self.number

    def reads(self) -> Iterator[Scalar]:
        """Yield scalars this one needs first: arguments, and those its indices read."""
        yield from self.args
        for index in indices(self):
            for atom in index.atoms():
                if isinstance(atom, Read):
                    yield atom.scalar


class Fold:
    """Reduction over `loops` by `combine` of `{a}` (so far) and `{b}` (the body), from
    `identity`."""

    __slots__ = ("loops", "combine", "identity", "place", "key")

    def __init__(
        self, loops: tuple[Variable, ...], combine: str, identity: Any, place: Index | None = None
    ):
        self.loops, self.combine, self.identity, self.place = loops, combine, identity, place
        self.key = (
            tuple(v.name for v in loops),
            combine,
            repr(identity),
            None if place is None else place.key,
        )


def indices(scalar: Scalar) -> Iterable[Index]:
    """Return index expressions a scalar is made of, its arguments' not included."""
    if scalar.kind == "load":
        return (scalar.data[1],)
    if scalar.kind == "index":
        return (scalar.data,)
    if scalar.kind == "condition":
        return scalar.data.indices()
    if scalar.kind == "fold" and scalar.data.place is not None:
        return (scalar.data.place,)
    return ()


def variables_of(index: Index) -> frozenset[str]:
    """Return names of the loop variables an index depends on."""
    found: set[str] = set()
    for atom in index.atoms():
        if isinstance(atom, Variable):
            found.add(atom.name)
        elif isinstance(atom, Read):
            found |= atom.scalar.variables
    return frozenset(found)


class Scalars:
    """Makes scalars, each expression once."""

    def __init__(self) -> None:
        self.made: dict[Hashable, Scalar] = {}
        self.location: Location | None = None  # given to scalars made from now on

    def _make(
        self,
        kind: str,
        dtype: str,
        args: tuple[Scalar, ...],
        data: Any,
        key: Hashable,
        variables: frozenset[str],
    ) -> Scalar:
        whole = (kind, dtype, tuple(a.number for a in args), key)
        found = self.made.get(whole)
        if found is None:
            found = Scalar(kind, dtype, args, data, len(self.made), variables)
            found.location = self.location
            self.made[whole] = found
        return found

    def load(self, leaf: Any, index: Index) -> Scalar:
        return self._make(
            "load",
            register(leaf.dtype),
            (),
            (leaf, index),
            (id(leaf), index.key),
            variables_of(index),
        )

    def number(self, value: Any, dtype: str) -> Scalar:
        # 0.0 == -0.0 == False, but these are three constants.
        return self._make("number", dtype, (), value, (type(value), repr(value)), frozenset())

    def call(self, template: str, dtype: str, args: tuple[Scalar, ...]) -> Scalar:
        variables = frozenset().union(*(a.variables for a in args))
        return self._make("call", dtype, args, template, template, variables)

    def index(self, index: Index, dtype: str) -> Scalar:
        return self._make("index", dtype, (), index, index.key, variables_of(index))

    def condition(self, condition: Condition) -> Scalar:
        variables = frozenset().union(*map(variables_of, condition.indices()))
        return self._make("condition", "bool", (), condition, condition.key, variables)

    def choice(self, condition: Scalar, yes: Scalar, no: Scalar) -> Scalar:
        args = (condition, yes, no)
        variables = frozenset().union(*(a.variables for a in args))
        return self._make("choice", yes.dtype, args, None, None, variables)

    def checked(self, index: Scalar, size: SizeLike, message: str, wrap: bool) -> Scalar:
        return self._make(
            "checked",
            "int64",
            (index,),
            (size, message, wrap),
            (size_key(size), message, wrap),
            index.variables,
        )

    def after(self, scalar: Scalar, checks: Sequence[Scalar]) -> Scalar:
        """Return a scalar that makes these checks first, also those on which `scalar` does not
        depend."""
        known = {s.number for s in walk([scalar])} if checks else set()
        args = (scalar, *(check for check in checks if check.number not in known))
        if len(args) == 1:
            return scalar
        variables = frozenset().union(*(a.variables for a in args))
        return self._make("after", scalar.dtype, args, None, None, variables)

    def fold(self, fold: Fold, body: Scalar, dtype: str) -> Scalar:
        bound = {v.name for v in fold.loops}
        outer = set(body.variables)
        for v in fold.loops:
            for part in (v.start, v.stop):
                if isinstance(part, Index):
                    outer |= variables_of(part)
        return self._make("fold", dtype, (body,), fold, fold.key, frozenset(outer - bound))


def walk(roots: Iterable[Scalar]) -> list[Scalar]:
    """Return all scalars reachable from the roots, each after those it needs."""
    done: set[int] = set()
    order: list[Scalar] = []
    stack: list[tuple[Scalar, bool]] = [(r, False) for r in roots]
    while stack:
        scalar, ready = stack.pop()
        if ready:
            order.append(scalar)
        elif scalar.number not in done:
            done.add(scalar.number)
            stack.append((scalar, True))
            stack.extend((s, False) for s in scalar.reads())
    return order


def unsimplified(roots: Iterable[Scalar]) -> Iterator[Quotient]:
    """Yield every // and % left in indices, inner ones too."""
    for scalar in walk(roots):
        for index in indices(scalar):
            for atom in index.atoms():
                if isinstance(atom, Quotient):
                    yield atom
