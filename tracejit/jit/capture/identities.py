"""Identity guards: which objects a recorded call told apart, or changed.

In: names of the code that was entered, objects that `id` and `hash` were asked for, objects that
effects change. Out: sources whose objects must all differ on replay, pairs of sources that must
hold one object, sources whose object counts by number. Kept by the tracer, asked by `build.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from types import CellType
from typing import Any

from tracejit.core.eager.tensor import Tensor
from tracejit.jit.capture.access_path import Source, weak_key
from tracejit.jit.capture.contents import elements
from tracejit.jit.capture.looking import is_exactly
from tracejit.jit.capture.state import ReachableState
from tracejit.jit.capture.watcher import NUMBERING, CodeNames

_EQUATED = ("object", "function", "partial")  # kinds that are equal to themselves alone


class IdentityReads:
    """Ways in which the code of one recorded call may ask which objects are one."""

    def __init__(self) -> None:
        self.compared = False  # any objects: `x is y`, `x in seen`
        self.equated = False  # those without an equality of their own: `x == y`
        self.looked_up = False  # keys: `table[x]`
        self.of_modules = False  # modules and what they hold: `named_parameters`
        self.any_number = False  # `id` and `hash` may be called unseen
        self.asked: set[int] = set()  # ids of objects they were called with

    def add_names(self, names: CodeNames, shows_calls: bool) -> None:
        """Take in the names of code that is entered. `shows_calls`: it is rewritten, so `numbering`
        sees its calls of `id` and `hash`."""
        self.compared |= names.identities
        self.equated |= names.equalities
        self.looked_up |= names.lookups
        self.any_number |= names.numbering
        self.any_number |= not shows_calls and not names.globals.isdisjoint(NUMBERING)

    def numbering(self, function: Callable[[Any], int]) -> Callable[[Any], int]:
        """Return the `id` or `hash` that recorded code calls; it notes which objects it is asked
        for."""

        def number(*args: Any) -> int:
            of_object: tuple[Any, ...] = (Tensor.__hash__, object.__hash__)
            if function is id or args and type(args[0]).__hash__ in of_object:
                self.asked.update(map(id, args))
            return function(*args)

        return number

    def numbered(self, state: ReachableState) -> list[Source]:
        """Return the sources of objects whose `id` or `hash` the call may have used."""
        return [p for p in state.objects() if self.any_number or id(p.value) in self.asked]

    def same(
        self, state: ReachableState, changed: Sequence[Any]
    ) -> Iterator[tuple[Source, Source]]:
        """Yield pairs of sources that must hold one object on replay. One kind is a dict's key and
        another source of it. The other is one variable of two closures, where the call changed one
        of that name."""
        for source in self._keys(state):
            other = state.source_of(source.value)
            if other is not None:
                yield source, other
        first: dict[int, Source] = {}
        for source in _cells(state, changed):
            other = first.setdefault(id(source.value), source)
            if other is not source:
                yield source, other

    def _keys(self, state: ReachableState) -> Iterator[Source]:
        """Yield sources for dict keys that are objects, unless the code tells no objects apart."""
        if not (self.compared or self.looked_up):
            return
        for source in state.sources:
            for key in source.keys if source.kind == "mapping" else ():
                found = Source(source, "key", weak_key(key), key, f"a key of {source.text}")
                if found.kind != "object":
                    yield from _identified(found)

    def distinct(
        self, state: ReachableState, sources: list[Source], changed: Sequence[Any],
        graded: Sequence[Any],
    ) -> list[Source]:
        """Return those of the sources at which no two objects may be one on replay. The code may
        compare them, or an effect on one of `changed` (or the gradient of one of `graded`) would
        show in another."""
        cells = {id(p.value): p for p in _cells(state, changed)}
        sources = [*sources, *cells.values()]
        keys = [p for p in self._keys(state) if state.source_of(p.value) is None]
        if self.compared or keys or self.looked_up and any(p.how == "key" for p in state.sources):
            return [*sources, *{id(p.value): p for p in keys}.values()]
        types, ids = {type(x) for x in changed}, {id(x) for x in graded}
        found = [
            p for p in sources
            if is_exactly(p.value, types) or id(p.value) in ids
            or self.equated and p.kind in _EQUATED
        ]
        if self.of_modules:
            known = {id(p) for p in found}
            found += [p for p in state.held_by_modules(sources) if id(p) not in known]
        number = Counter(type(p.value) for p in found)
        return [p for p in found if number[type(p.value)] > 1]


def _identified(key: Source) -> Iterator[Source]:
    """Yield sources for those parts of a key that equal themselves alone."""
    if key.kind == "tensor" or key.kind in _EQUATED:
        yield key
    elif key.kind == "method":
        yield Source(key, "self", None, key.value.__self__, f"{key.text}.__self__")
    elif key.kind == "sequence":
        for k, element in enumerate(elements(key.value)):
            yield from _identified(Source(key, "item", k, element, f"{key.text}[{k}]"))


def _cells(state: ReachableState, changed: Sequence[Any]) -> list[Source]:
    """Return sources for closure variables: each that the call changed, and all of the same name,
    which may be one on replay."""
    if not any(type(x) is CellType for x in changed):
        return []
    found: dict[str, list[Source]] = {}
    for source in state.sources:
        if source.how == "closure":
            parent, key = source.parent, source.key
            cell, how = parent.value.__closure__[key], "variable"  # type: ignore[union-attr]
        elif source.how == "cell":
            parent, key, cell, how = None, source.key, source.key, "constant"
        else:
            continue
        variable = Source(parent, how, key, cell, f"the variable {source.text}")
        variable.kind = "variable"
        found.setdefault(variable.text, []).append(variable)
    written = {id(x) for x in changed}
    return [p for same in found.values() if any(id(p.value) in written for p in same) for p in same]
