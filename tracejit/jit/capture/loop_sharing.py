"""Variables of a rolled loop that may be one tensor when it ends: `best = y if c else best`.

In: a recorded body in which a branch may give a variable a tensor that was there before. Out: flags
that are carried from iteration to iteration, and, after the loop, what `sharing.py` keeps. Raises
`RegionRefused` where flags cannot tell. Called by `loops.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.creation import full_of
from tracejit.core.ops.types import TensorType, bool_
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.looking import is_a
from tracejit.jit.capture.loop_body import LoopBodyTrace
from tracejit.jit.capture.loop_variables import CarriedVar
from tracejit.jit.capture.strides import known_strides, merged_strides, same_strides
from tracejit.jit.capture.subgraph import speculate
from tracejit.jit.ir.graph import Value


@dataclass(eq=False)
class Edge:
    """Possible content of a variable after an iteration: what a variable holds before it, a tensor
    of the body, or a tensor made outside.

    other   that CarriedVar or Tensor
    flag    under which it is so; None: always
    """

    other: Any
    flag: Tensor | None


@dataclass(eq=False)
class Held:
    """Flag that says if `var` holds `other`: a tensor made before the loop, or what another
    variable holds."""

    var: CarriedVar
    other: Any
    flag: tuple[Value, Value, Value]  # before the loop, within an iteration, after it
    remains: bool  # it may be so when the loop is over


class LoopSharing:
    """Flags of a loop, each as (value before the loop, within an iteration, after it)."""

    def __init__(self, body: LoopBodyTrace):
        self.parent, self.region, self.trip_count = body.parent, body.region, body.trip_count
        self.carried_vars = [s for s in body.carried_vars if s.is_tensor]
        self.changing = [s for s in self.carried_vars if s.end is not s.start]
        self.edges = {id(s): [*self._edges(s)] for s in self.carried_vars}
        self.held: dict[tuple[int, int], Held] = {}
        told = any(e.flag is not None for edges in self.edges.values() for e in edges)
        for var in self.changing:
            self._check(var, told)
        if told:
            self._follow(self._possible())
        self.flags = [held.flag for held in self.held.values()]
        if any(self._is_view(held.other) for held in self.held.values() if held.remains):
            raise RegionRefused("a variable may be a view of an outer tensor")
        for held in self.held.values():
            if held.remains:
                self._settle_strides(held)

    def _settle_strides(self, held: Held) -> None:
        """Merge the strides of a variable and of what it may hold, where they differ."""
        var, other = held.var, held.other
        one = self.region.traced(var.end)
        another = (self.region.traced(other.end) if is_a(other, CarriedVar)
                   else self.parent.traced(other))
        if not same_strides(one.shape, var.strides, known_strides(another)):
            var.strides = merged_strides(var.name, one, another)

    def tells(self, var: CarriedVar) -> bool:
        """Return True if flags tell what a variable holds after the loop, even if it never ran."""
        return bool(self.held) and var in self.changing

    def outside(self, var: CarriedVar) -> list[Tensor]:
        """Return the tensors made before the loop that a variable may hold after it."""
        return [held.other for held in self.held.values()
                if held.var is var and held.remains and not is_a(held.other, CarriedVar)]

    def remember(self, values: dict[int, Any], flags: Sequence[Tensor]) -> None:
        """Tell the parent what may be one, under the node's result `flags`. `values`: what
        variables hold now, by their ids."""
        parent = self.parent
        for held, flag in [(h, f) for h, f in zip(self.held.values(), flags) if h.remains]:
            result = values[id(held.var)]
            other = values[id(held.other)] if is_a(held.other, CarriedVar) else held.other
            memory, known = parent.traced(result).memory, parent.traced(other).memory
            parent.may_share(memory, known, flag)
            parent.may_be(result, other, flag)

    # -- what the body says ----------------------------------------------------------------------
    def _edges(self, var: CarriedVar) -> Iterator[Edge]:
        starts = {id(s.start): s for s in self.carried_vars}
        ends = {id(s.end) for s in self.changing}
        if id(var.end) in starts:
            yield Edge(starts[id(var.end)], None)
        for tensor, flag in self.region.sharing.tensors.of(var.end):
            if id(tensor) in starts or id(tensor) in ends or self.region.is_outer(tensor):
                yield Edge(starts.get(id(tensor), tensor), flag)

    def _check(self, var: CarriedVar, told: bool) -> None:
        """Refuse a variable that may be a tensor written in the loop, or that may share memory
        without being one tensor. `told`: flags of tensors exist."""
        region = self.region
        met = [e.other.start if is_a(e.other, CarriedVar) else e.other
               for e in self.edges[id(var)]]
        if told and any(region.traced(t).memory.mutations for t in met):
            raise RegionRefused(f"{var.name} may be a tensor that the loop writes")
        known = {region.traced(t).memory for t in met}
        seen = {region.traced(t).memory for s in self.carried_vars for t in (s.start, s.end)}
        own = region.traced(var.end).memory
        for memory, _ in region.sharing.memories.of(own):
            apart = memory not in known or region.sharing.in_part(own, memory)
            if apart and (memory in seen or region.outer_memory(memory)):
                raise RegionRefused(f"{var.name} may share memory with another tensor")

    # -- what goes from iteration to iteration ---------------------------------------------------
    def _possible(self) -> dict[tuple[int, int], tuple[CarriedVar, Any]]:
        """Find (variable, tensor or other variable) where the first may hold what the second is."""
        outside = {id(s.outer): s.outer for s in self.carried_vars}
        outside |= {id(e.other): e.other for edges in self.edges.values() for e in edges
                    if is_a(e.other, Tensor) and self.region.is_outer(e.other)}
        pairs = [(s, t) for s in self.changing for t in outside.values()]
        pairs += [(s, t) for k, s in enumerate(self.changing) for t in self.changing[:k]]
        found = {(id(s), id(t)): (s, t) for s, t in pairs if _at_first(s, t)}

        def now(var: CarriedVar, other: Any) -> bool:
            return (id(var), id(other)) in found or (id(other), id(var)) in found

        for _ in pairs:
            before = len(found)
            found |= {(id(s), id(t)): (s, t) for s, t in pairs
                      if self._after(s, t, now, lambda flag: True)}
            if len(found) == before:
                break
        return found

    def _follow(self, possible: dict[tuple[int, int], tuple[CarriedVar, Any]]) -> None:
        region, parent = self.region, self.parent
        starts = {}
        for key, (var, other) in possible.items():
            init = parent.traced(full_of(None, (), _at_first(var, other), bool_)).read()
            value = region.graph.input(TensorType(bool_, ()), source="carried")
            starts[key] = (init, value, region.tensor_of(value))

        def now(var: CarriedVar, other: Any) -> Any:
            found = starts.get((id(var), id(other))) or starts.get((id(other), id(var)))
            return False if found is None else found[2]

        with speculate(region), no_grad():
            for key, (var, other) in possible.items():
                init, value, _ = starts[key]
                after = self._after(var, other, now, lambda f: True if f is None else f)
                end = after if is_a(after, Tensor) else full_of(None, (), after, bool_)
                flag = (init, value, region.traced(end).read())
                remains = after is not False or self.trip_count is None and _at_first(var, other)
                self.held[key] = Held(var, other, flag, remains)

    def _is_view(self, other: Any) -> bool:
        return is_a(other, Tensor) and bool(self.parent.traced(other).views)

    def _after(self, var: CarriedVar, other: Any, now: Callable[[CarriedVar, Any], Any],
               flag: Callable[[Tensor | None], Any]) -> Any:
        """Return whether the variable holds `other` after an iteration: a bool or a flag. `now`
        tells what was so before it."""
        found: Any = False
        for one, when in self._holds(var, flag):
            for another, also in self._holds(other, flag):
                found = _either(found, _both(_both(when, also), _one(one, another, now)))
        return found

    def _holds(self, var: Any, flag: Callable[[Tensor | None], Any]) -> list[tuple[Any, Any]]:
        """List what a variable may hold after an iteration, and when; a tensor made outside holds
        itself."""
        if not is_a(var, CarriedVar):
            return [(var, True)]
        return [(var.end, True), *((e.other, flag(e.flag)) for e in self.edges[id(var)])]


def _at_first(var: CarriedVar, other: Any) -> bool:
    """Return True if a variable holds before the loop what `other` is or holds."""
    return var.outer is (other.outer if is_a(other, CarriedVar) else other)


def _one(one: Any, other: Any, now: Callable[[CarriedVar, Any], Any]) -> Any:
    """Return whether two are one, a bool or a flag, given what variables held before (`now`)."""
    one, other = (x.outer if is_a(x, CarriedVar) and x.end is x.start else x for x in (one, other))
    if one is other:
        return True
    if is_a(one, CarriedVar):
        return now(one, other)
    return now(other, one) if is_a(other, CarriedVar) else False


def _both(one: Any, other: Any) -> Any:
    if is_a(one, bool) or is_a(other, bool):
        return one is not False and other is not False and (other if one is True else one)
    return one & other


def _either(one: Any, other: Any) -> Any:
    if is_a(one, bool) or is_a(other, bool):
        return one is True or other is True or (other if one is False else one)
    return one | other
