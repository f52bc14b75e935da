"""Results of a branch that may be another tensor: one made outside, or an earlier result.

In: the two recorded sides and the tensors that they give. Out: `Choice`s; flags that the `cond`
node must give beside its results; once the node is made, the facts that `sharing.py` keeps. Raises
`RegionRefused` where shared memory could not be followed. Called by `join.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.views import counting_family
from tracejit.core.ops.creation import full_of
from tracejit.core.ops.types import bool_
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.looking import is_a
from tracejit.jit.capture.storage import FunctionalStorage
from tracejit.jit.capture.subgraph import SubgraphTracer, speculate
from tracejit.jit.capture.tracer import Tracer
from tracejit.jit.ir.graph import Value


@dataclass(eq=False)
class Choice:
    """Fact that result `number` is `other` after side `side`.

    `other`: memory or a tensor made outside, or the number of an earlier result. `flag`: a flag of
    the side's region under which that holds; None if it always does.
    """

    number: int
    other: Any
    memory: bool  # they share memory; else they are one tensor
    whole: bool  # the tensors over it are one, too
    side: int
    flag: Tensor | None


class Choices:
    """Choices of a branch.

    `pairs`: tensors that the first and the second side give. `apart`: sets of results that code may
    see side by side, so they may not share memory.
    """

    def __init__(self, regions: tuple[SubgraphTracer, SubgraphTracer],
                 pairs: Sequence[tuple[Tensor, Tensor]], apart: Sequence[Collection[int]]):
        self.regions, self.found = regions, []
        for side, region in enumerate(regions):
            given = [pair[side] for pair in pairs]
            memories = [region.traced(t).memory for t in given]
            if any(len({memories[k] for k in numbers}) < len(numbers) for numbers in apart):
                raise RegionRefused("two results of one branch share memory")
            for number, tensor in enumerate(given):
                found = [Choice(number, other, True, whole, side, flag) for other, whole, flag
                         in _memories(region, tensor, given[:number])]
                found += [Choice(number, other, False, True, side, flag) for other, flag
                          in _tensors(region, tensor, given[:number])]
                if counting_family(tensor) is not None and any(choice.memory for choice in found):
                    raise RegionRefused(
                        "a result is `.data` of a tensor")
                _check_views(region, tensor, found, pairs[number])
                self.found += found
        for number in range(len(pairs)):
            outer = {c.other.version for c in self.found
                     if c.number == number and is_a(c.other, FunctionalStorage)}
            if len(outer) > 1:
                raise RegionRefused(
                    "a result is one of two tensors with different `_version`")
        self.flagged = [c for c in self.found if c.flag is not None]

    def outputs(self, side: int) -> list[Value]:
        """Return the flags as outputs of a side's region; those of the other side are False."""
        region = self.regions[side]
        with speculate(region):
            return [region.traced(c.flag if c.side == side and c.flag is not None
                                  else full_of(None, (), False, bool_)).read()
                    for c in self.flagged]

    def remember(self, parent: Tracer, predicate: Tensor, results: Sequence[Tensor],
                 flags: Sequence[Tensor]) -> None:
        """Tell the parent, once the node is made, which results may be another tensor or memory."""
        given = dict(zip(map(id, self.flagged), flags))
        untaken = ~predicate if any(c.side and c.flag is None for c in self.found) else predicate
        for choice in self.found:
            flag = given.get(id(choice), untaken if choice.side else predicate)
            result = results[choice.number]
            other = results[choice.other] if type(choice.other) is int else choice.other
            if not choice.memory:
                parent.may_be(result, other, flag)
                continue
            memory = parent.traced(result).memory
            if is_a(other, Tensor):
                other = parent.traced(other).memory
            else:
                memory.version_counter.count = other.version  # goes on from there, if it is that
            parent.may_share(memory, other, flag, choice.whole)


def _memories(region: SubgraphTracer, own: Tensor, before: Sequence[Tensor]
              ) -> Iterator[tuple[Any, bool, Tensor | None]]:
    """Yield (outer memory or number of an earlier result, whole, flag) that a result may share."""
    earlier = {region.traced(tensor).memory: k for k, tensor in enumerate(before)}
    place, sharing = region.traced(own).memory, region.sharing
    # By memory: True if all tensors there that it may be are outer or earlier ones themselves.
    twins: dict[FunctionalStorage, bool] = {}
    for tensor, _ in sharing.tensors.of(own):
        memory, known = sharing.memory_of(tensor), id(tensor) in map(id, before)
        twins[memory] = (known or region.is_outer(tensor)) and twins.get(memory, True)
    for memory, flag in [(place, None), *sharing.memories.of(place)]:
        outer = region.outer_memory(memory)
        whole = region.is_outer(own) if flag is None else (
            twins.get(memory, False) and not sharing.in_part(place, memory))
        if outer is not None:
            yield outer, whole, flag
        elif flag is not None and memory in earlier:
            yield earlier[memory], whole, flag


def _tensors(region: SubgraphTracer, own: Tensor, before: Sequence[Tensor]
             ) -> Iterator[tuple[Any, Tensor | None]]:
    """Yield (tensor made outside or number of an earlier result, flag) that a result may be."""
    earlier = {id(tensor): k for k, tensor in enumerate(before)}
    for tensor, flag in [(own, None), *region.sharing.tensors.of(own)]:
        if region.is_outer(tensor):
            yield tensor, flag
        elif flag is not None and id(tensor) in earlier:
            yield earlier[id(tensor)], flag


def _check_views(region: SubgraphTracer, tensor: Tensor, found: list, pair: Sequence[Tensor]
                 ) -> None:
    """Refuse a view of such memory unless both sides give it: a choice is of whole memory."""
    if region.traced(tensor).views and found and pair[0] is not pair[1]:
        raise RegionRefused("a result is a view of an outer tensor in one case only")
