"""Differentiate branches: the gradient of a `cond` is a `cond` with the same predicate.

In: the recorded sides of a branch, the tensors they give and depend on. Out: gradient regions, and
the node of the tape that runs them. A side is computed again where it is pulled back, so nothing
of it is kept. Installed into `capture.region`, as is the gradient of loops (`loops.py`).
"""

from __future__ import annotations

from typing import Any

from tracejit.autodiff.loops import gradient_of
from tracejit.autodiff.pull_back import ControlBackward, pull_back
from tracejit.autodiff.reach import leaves, reaching
from tracejit.capture.region import RegionRecorder, install_region_gradients
from tracejit.eager.modes import no_grad
from tracejit.eager.tape import record_custom
from tracejit.eager.tensor import Tensor
from tracejit.ir.graph import Graph, Value
from tracejit.ops.creation import zeros_of
from tracejit.ops.record import REGISTRY


class Gradients:
    """What `capture.region` asks for."""

    def of_cond(self, parent: Any, flag: Tensor, keys: list[Value],
                sides: list[tuple[RegionRecorder, list[Tensor]]], wrt: list[Tensor],
                tracked: list[int], alone: list[int | None]) -> CondGradient:
        return CondGradient(parent, flag, keys, sides, wrt, tracked, alone)

    def of_loop(self, node: Any) -> Any:
        return gradient_of(node)


class CondGradient:
    """The gradient of a `cond`: each side is computed again and pulled back.

    tracked  numbers of the results that require grad
    alone    for each of them the only side whose value anybody reads, or None
    """

    def __init__(self, parent: Any, flag: Tensor, keys: list[Value],
                 sides: list[tuple[RegionRecorder, list[Tensor]]], wrt: list[Tensor],
                 tracked: list[int], alone: list[int | None]):
        self.parent, self.flag, self.wrt, self.tracked = parent, flag, wrt, tracked
        pulled = [pull_back(region, outputs, self._met(region)) for region, outputs in sides]
        found = [dict(zip(map(id, self._met(region)), grads))
                 for (region, _), (_, grads) in zip(sides, pulled)]
        masks = [reaching(outputs, wrt) for _, outputs in sides]
        first = parent.root.first_node
        for number, side in enumerate(alone):  # what is not reached has none, which is not zero
            if side is not None:
                continue
            one, other = [leaves([x for x, m in zip(wrt, mask) if number in m], first, True)
                          for mask in masks]
            parent.same_leaves(one, other)
        self.masks = [a | b for a, b in zip(*masks)]
        self.reached = [x for x in wrt if any(f.get(id(x)) is not None for f in found)]
        met = [key for region, _ in sides for key in region.captured]
        keys[:] = dict.fromkeys([*keys, *met])  # backward may have read more
        self.keys = keys
        self.regions = tuple(
            self._region(region, keys, tangents, grads)
            for (region, _), (tangents, _), grads in zip(sides, pulled, found))
        self.types = [region.traced(x).read().type for region, outputs in sides[:1]
                      for x in outputs]

    def _met(self, region: RegionRecorder) -> list[Tensor]:
        return region.outer_tensors()

    def _region(self, region: RegionRecorder, keys: list[Value], tangents: list[Value],
                grads: dict[int, Value | None]) -> Graph:
        outputs = []
        for x in self.reached:
            grad = grads.get(id(x))
            if grad is None:
                grad = _zeros(region.traced(x).read())
            outputs.append(grad)
        inputs = [*tangents, *[region.capture(k) for k in keys]]
        made = region.region(inputs, outputs)
        made.name = f"{region.name}_backward"
        return made

    def attach(self, results: list[Tensor]) -> None:
        """Put the node on the tape; `results` are all outputs that are not written memory."""
        parent = self.parent
        with no_grad():
            held = [parent.holding(k) for k in self.keys]
        place = {id(x): k for k, x in enumerate(self.reached)}
        backward = ControlBackward(
            REGISTRY["cond"], {}, self.regions,
            [self.flag, *range(len(self.types)), *held], self.types,
            [place.get(id(x)) for x in self.wrt], self.masks)
        outputs = [results[k] for k in self.tracked]
        record_custom("CondBackward", self.wrt, outputs, backward)


def _zeros(like: Value) -> Value:
    return zeros_of(like, like.type)


install_region_gradients(Gradients())
