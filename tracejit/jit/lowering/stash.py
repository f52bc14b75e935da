"""Expensive values that a row needs twice: kept in the output's own memory between its loops.

In: a `Nest` with reductions over rows. Out: which scalar of a store an earlier reduction's loop
over the same row computed, and where to keep it. Called by `printing.py`. A softmax computes each
exponential once: the sum's loop leaves it where the quotient will be written.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.jit.lowering.index import Index, Variable, same_size, size_key
from tracejit.jit.lowering.loops import Nest, Store
from tracejit.jit.lowering.scalars import Scalar, walk

_COSTLY = re.compile(r"\b(?:a?(?:sin|cos|tan)h?|exp(?:2|m1)?|log\w*|sigmoid|erfc?|pow)\(")


@dataclass(frozen=True)
class Stash:
    """`early`, computed in a reduction's loop, is written to `early_address` and read back as
    `late`."""

    store: Store
    early: Scalar
    late: Scalar
    early_address: Index
    late_address: Index


def find_stashes(nest: Nest, buffer_of: Any, targets: Any) -> list[Stash]:
    """Return at most one stash for each store."""
    order = nest.scalars
    folds = [s for s in order if s.kind == "fold"]
    if not folds or nest.column is not None:
        return []
    read = {buffer_of(s.data[0]) for s in order if s.kind == "load"}
    found = []
    for store in nest.filled():
        buffer, strides = targets(store.leaf)[0]
        # Memory that is read may hold what later loops need.
        if store.inner and strides is None and buffer not in read:
            stash = _stash(nest, store, folds)
            found += [] if stash is None else [stash]
    return found


def _stash(nest: Nest, store: Store, folds: Sequence[Scalar]) -> Stash | None:
    address = nest.emission.address(store.leaf, store.place)
    kind = store.leaf.dtype.name
    for late in reversed(walk([store.scalar])):
        if late.kind != "call" or late.dtype != kind or not _COSTLY.search(late.data):
            continue
        for fold in folds:
            if bool(fold.variables) != bool(nest.outer):
                continue  # computed once for all rows: no row's memory can hold it
            early = _twin(late, store.inner, fold)
            moved = None if early is None else renamed(address, store.inner, fold.data.loops)
            if early is not None and moved is not None:
                return Stash(store, early, late, moved, address)
    return None


def _twin(late: Scalar, inner: Sequence[Variable], fold: Scalar) -> Scalar | None:
    """Return the scalar of a reduction's body that is `late` with the reduction's variables, or
    None."""
    loops = fold.data.loops
    fits = len(loops) == len(inner) and all(
        same_size(a.extent, b.extent) and a.stop is None for a, b in zip(loops, inner)
    )
    if not fits or not {v.name for v in inner} <= late.variables:
        return None
    wanted = signature(late, [v.name for v in inner], {})
    names, known = [v.name for v in loops], {}  # type: ignore[var-annotated]
    for scalar in walk(fold.args):
        if scalar.kind == "call" and scalar.data == late.data:
            if signature(scalar, names, known) == wanted:
                return scalar
    return None


def signature(scalar: Scalar, names: Sequence[str], known: dict[int, Hashable]) -> Hashable:
    """Return a key, equal for scalars that differ only in these variables, which count by their
    position."""
    if scalar.number in known:
        return known[scalar.number]
    found: Hashable = ("itself", scalar.number)
    if scalar.variables & set(names):
        if scalar.kind == "call":
            parts = tuple(signature(a, names, known) for a in scalar.args)
            found = (scalar.data, scalar.dtype, parts)
        elif scalar.kind == "load":
            found = ("load", id(scalar.data[0]), _index_key(scalar.data[1], names))
        elif scalar.kind == "index":
            found = ("index", scalar.dtype, _index_key(scalar.data, names))
    known[scalar.number] = found
    return found


def _index_key(index: Index, names: Sequence[str]) -> Hashable:
    terms = []
    for key, (atom, coefficient) in index.terms.items():
        place = names.index(atom.name) if isinstance(atom, Variable) and atom.name in names else key
        terms.append((place, size_key(coefficient)))
    return tuple(sorted(terms, key=str)), size_key(index.constant)


def renamed(index: Index, old: Sequence[Variable], new: Sequence[Variable]) -> Index | None:
    """Return the index with other variables; None where it is not linear in them."""
    table: dict[Hashable, Variable] = {a.key: b for a, b in zip(old, new)}
    terms: dict[Hashable, Any] = {}
    for key, (atom, coefficient) in index.terms.items():
        if not isinstance(atom, Variable):
            return None
        atom = table.get(key, atom)
        terms[atom.key] = (atom, coefficient)
    return Index(terms, index.constant)
