"""Region of a rolled loop's body: what an iteration may do that a branch may not.

In: ops of the iteration. Out: a region's graph. Random draws take a state that is carried along.
Appends go to the body, which also learns from branches where gradients lead. Made by
`loop_body.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tracejit.core.eager.nodes import Node
from tracejit.core.eager.subclasses import keeps_class
from tracejit.core.eager.tensor import Tensor
from tracejit.core.memory import CPU
from tracejit.core.ops import random
from tracejit.core.ops.types import TensorType, int64
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.inputs import RngInput
from tracejit.jit.capture.looking import is_a
from tracejit.jit.capture.storage import FunctionalStorage, FunctionalTensor
from tracejit.jit.capture.subgraph import SubgraphTracer

if TYPE_CHECKING:
    from tracejit.jit.capture.loop_body import LoopBodyTrace


class LoopBodyTracer(SubgraphTracer):
    """Tracer of a loop's body; knows the loop it belongs to."""

    body: LoopBodyTrace

    @property
    def may_run_zero_times(self) -> bool:  # type: ignore[override]
        return self.body.trip_count is None and not (self.body.counted and self.body.before is None)

    def same_leaves(self, one: set[Node], other: set[Node]) -> None:
        if one != other:  # checked later: only the loop's gradient knows where variables lead
            self.leaf_constraints.append((one, other))

    def carries(self, tensor: Tensor) -> bool:
        return any(s.start is tensor for s in self.body.carried_vars) or super().carries(tensor)

    def before(self, tensor: Tensor) -> list[Tensor]:
        found = next((s.outer for s in self.body.carried_vars if s.start is tensor), None)
        if found is None:
            return super().before(tensor)
        same = [s.start for s in self.body.carried_vars
                if s.outer is found and s.start is not tensor]
        return [found, *same, *(twin for twin, _ in self.parent.sharing.twins(found))]

    def rng_input_of(self, generator: random.Generator) -> RngInput:
        if self.body.trip_count is None:
            raise RegionRefused(
                "a tensor decides when it ends, and it draws random numbers")
        draws = self.generators.get(id(generator))
        if draws is None:
            self.parent.rng_input_of(generator)
            state = self.graph.input(TensorType(int64, (2,), CPU), source="generator state")
            tensor = self._wrap(FunctionalTensor(self, FunctionalStorage(state)), track=False)
            draws = self.generators[id(generator)] = RngInput(generator, tensor, state)
        return draws

    def commit_container(self, container: Any) -> None:
        if self.may_run_zero_times:
            super().commit_container(container)
        self.parent.commit_container(container)

    def appending(self, container: list) -> Callable[[Any], None]:
        def append(element: Any) -> None:
            cls = type(element)
            if cls is not Tensor and is_a(element, Tensor) and keeps_class(cls):
                raise RegionRefused("it appends a tensor of a subclass")
            self.body.append(container, element)

        return append
