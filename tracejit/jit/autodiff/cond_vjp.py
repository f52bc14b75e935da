"""Differentiate branches: the gradient of a `cond` is a `cond` with the same predicate.

In: the traced sides of a branch, the tensors they give and depend on. Out: gradient regions, and
the node of the tape that runs them. The gradient region computes its side again, so the forward
`cond` saves nothing of it. Installed into `capture.subgraph`, with the gradient of loops
(`loop_vjp.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import repeat
from typing import Any

from tracejit.core.eager.conditional_grad import both, either, if_false, if_true
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.saved import alias
from tracejit.core.eager.tape import record_custom
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.creation import full_of, zeros_of
from tracejit.core.ops.record import REGISTRY
from tracejit.core.ops.types import TensorType, bool_
from tracejit.jit.autodiff.branch_freed import BranchFreed
from tracejit.jit.autodiff.loop_vjp import gradient_of
from tracejit.jit.autodiff.outer_saves import (
    BranchSaves,
    InnerSave,
    OuterSave,
    OuterSaves,
    in_region,
    only_if,
)
from tracejit.jit.autodiff.reach import freed_within, leaves, memory_kept, reaching
from tracejit.jit.autodiff.vjp import ArrivalFlag, ControlFlowVjp, vjp
from tracejit.jit.capture.storage import FunctionalStorage
from tracejit.jit.capture.subgraph import SubgraphTracer, install_region_gradients
from tracejit.jit.ir.graph import Graph, Value


class Gradients:
    """Makers of the gradients of control flow, which `capture.subgraph` calls."""

    def of_cond(self, parent: Any, flag: Tensor, keys: list[Value],
                sides: list[tuple[SubgraphTracer, list[Tensor]]], wrt: list[Tensor],
                tracked: list[int], from_one_side: list[int | None],
                given: list[list[Tensor]]) -> CondGradient:
        return CondGradient(parent, flag, keys, sides, wrt, tracked, from_one_side, given)

    def of_loop(self, node: Any) -> Any:
        return gradient_of(node)


class CondGradient:
    """Gradient of a `cond`: a gradient region computes its side again and pulls it back.

    wrt      tensors outside that a side reads
    tracked  numbers of the results that require grad
    from_one_side  for each of them the only side whose value anybody reads, or None
    given    what each side gives for all results
    """

    def __init__(self, parent: Any, flag: Tensor, keys: list[Value],
                 sides: list[tuple[SubgraphTracer, list[Tensor]]], wrt: list[Tensor],
                 tracked: list[int], from_one_side: list[int | None], given: list[list[Tensor]]):
        self.parent, self.flag, self.wrt, self.tracked = parent, flag, wrt, tracked
        self.given = given
        masks = [reaching(outputs, wrt) for _, outputs in sides]
        first = parent.root.first_node
        # A leaf that one side alone reaches has no gradient on the other, not zeros: refused.
        for number, side in enumerate(from_one_side):
            if side is not None:
                continue
            one, other = [leaves([x for x, m in zip(wrt, mask) if number in m], first, True)
                          for mask in masks]
            parent.same_leaves(one, other)
        self.masks = [a | b for a, b in zip(*masks)]
        self.sides, self.memories = sides, [memory_kept(*side) for side in sides]
        self.freed = [freed_within(*side) for side in sides]
        # The gradient of a single result arrives whenever the backward runs: no flags then.
        plans = [[SideGradient(region, outputs, wrt, mask, flagged)
                  for (region, outputs), mask in zip(sides, masks)]
                 for flagged in (False, True)[:len(tracked)]]
        met = [key for region, _ in sides for key in region.captured]
        keys[:] = dict.fromkeys([*keys, *met])  # gradients may have captured more
        self.keys = keys
        self.plans = [self._regions(*plan) for plan in plans]
        self.types = [region.traced(x).read().type for region, outputs in sides[:1]
                      for x in outputs]

    def _regions(self, one: SideGradient, other: SideGradient) -> tuple:
        """Return both regions, the output number of each gradient, the rule for when gradients
        arrive, and True if there are flags."""
        reached = [k for k, _ in enumerate(self.wrt) if k in one.grads or k in other.grads]
        told = [k for k in reached if k in one.told or k in other.told]
        place = {k: number for number, k in enumerate(reached)}
        says = {k: len(reached) + number for number, k in enumerate(told)}
        numbers = range(len(self.wrt))
        arrival = ArrivalRule([(one.reached(k), other.reached(k)) for k in numbers],
                              [says.get(k) for k in numbers])
        likes = {k: other.grads.get(k, one.grads.get(k)).type  # type: ignore[union-attr]
                 for k in reached}
        regions = tuple([side.made(self.keys, likes, told) for side in (one, other)])
        return regions, [place.get(k) for k in numbers], arrival, bool(one.flags)

    def attach(self, results: list[Tensor]) -> None:
        """Put the node on the tape. `results`: all outputs of the `cond` but those for written
        memory."""
        with no_grad():
            held = [self.parent.tensor_of(k) for k in self.keys]
        numbers = range(len(self.types))
        backward = None
        for regions, places, arrival, flagged in reversed(self.plans):
            # What sides say of arrival holds if all tangents arrive: with fewer, flags must run.
            covers = [frozenset([k]) for k in numbers if arrival.tells]
            operands = [self.flag, *numbers, *(ArrivalFlag(k) for k in numbers if flagged), *held]
            backward = ControlFlowVjp(REGISTRY["cond"], {}, regions, operands, self.types, places,
                                      self.masks, arrival, covers, backward)
        ways = [*map(self._kept, self.sides, self.memories, self.given, repeat(results))]
        backward.kept = OuterSaves(ways, self.flag, held)  # type: ignore[union-attr]
        tracked = [results[k] for k in self.tracked]
        closed = not any(region.runs_code for region, _ in self.sides)
        backward.leads_to(self.parent, self.wrt, tracked, closed)  # type: ignore[union-attr]
        record_custom("CondBackward", self.wrt, tracked, backward,  # type: ignore[arg-type]
                      freeing=BranchFreed(self.freed, len(numbers), self.flag))

    def _kept(
        self, side: tuple[SubgraphTracer, list[Tensor]],
        memories: dict[FunctionalStorage, InnerSave], given: list[Tensor], results: list[Tensor]
    ) -> BranchSaves:
        """List the memory outside, and that of results, which a side's history keeps."""
        region, _ = side
        found = []
        for item in region.lifted.values():
            own = item.traced.memory  # type: ignore[union-attr]
            if own in memories:
                itself = memories[own].seen_as(item.tensor, item.tensor)
                found.append(OuterSave(own, memories[own], item.tensor, itself))
        for x, result in zip(given, results):
            own = region.traced(x).memory
            if own in memories and own not in region.copies:
                itself = memories[own].seen_as(x, result)
                found.append(OuterSave(own, memories[own], alias(result), itself))
            for other, flag in region.sharing.memories.of(own):
                if other in memories and other not in region.copies:
                    within = only_if(memories[other], region.traced(flag).read())
                    found.append(OuterSave(other, within, alias(result)))
        inputs = [region.capture(key) for key in self.keys]
        return BranchSaves(found, partial(in_region, region.graph, inputs))


class SideGradient:
    """Gradient of one side.

    grads  number in `wrt` -> gradient; no entry where none arrives
    told   number in `wrt` -> bool value that says if it arrives; no entry where that is known
    """

    def __init__(self, region: SubgraphTracer, outputs: list[Tensor], wrt: list[Tensor],
                 masks: list[frozenset[int]], flagged: bool):
        self.region, self.masks = region, masks
        kind = TensorType(bool_, (), region.traced(outputs[0]).read().type.device)
        self.flags = [region.graph.input(kind, source="arrives") for _ in outputs if flagged]
        met = {id(x) for x in region.outer_tensors()}
        numbers = [k for k, x in enumerate(wrt) if id(x) in met]
        self.tangents, grads, conditions = vjp(region, outputs, [wrt[k] for k in numbers],
                                               self.flags)
        self.grads = {k: g for k, g in zip(numbers, grads) if g is not None}
        self.told = {k: c for k, c in zip(numbers, conditions) if isinstance(c, Value)}

    def reached(self, number: int) -> frozenset[int]:
        """Return the tangents that reach this tensor of `wrt`."""
        return self.masks[number] if number in self.grads else frozenset()

    def made(self, keys: list[Value], likes: dict[int, TensorType], told: list[int]) -> Graph:
        """Make the region: (tangents, flags, captured values) -> (gradients `likes`, arrival flags
        `told`). Both sides must give the same, so a missing gradient becomes zeros, a missing flag
        a constant."""
        outputs = [self.grads[k] if k in self.grads else zeros_of(self.tangents[0], kind)
                   for k, kind in likes.items()]
        outputs += [self.told[k] if k in self.told
                    else full_of(self.tangents[0], (), k in self.grads, bool_) for k in told]
        inputs = [*self.tangents, *self.flags, *[self.region.capture(k) for k in keys]]
        made = self.region.region(inputs, outputs)
        made.name = f"{self.region.name}_backward"
        return made


class ArrivalRule:
    """Rule for when the gradients that a `cond` gives arrive.

    sides   for each input the tangents that reach it, on the one side and on the other
    told    for each input the number of the result that says so, where the sides compute it
    """

    def __init__(self, sides: list[tuple[frozenset[int], frozenset[int]]], told: list[int | None]):
        self.sides, self.told = sides, told
        self.tells = any(number is not None for number in told)

    def __call__(self, operands: Sequence[Any], conditions: Sequence[Any], made: Sequence[Tensor]
                 ) -> list[Any]:
        flag = operands[0]
        found = []
        for (one, other), number in zip(self.sides, self.told):
            first, second = [either(*(conditions[k] for k in sorted(side)))
                             for side in (one, other)]
            arrives = either(both(if_true(flag), first), both(if_false(flag), second))
            found.append(arrives if number is None or arrives is False
                         else if_true(made[number]))
        return found


install_region_gradients(Gradients())
