"""Nodes that stand for a captured call on the tape.

In: what a replay keeps for its backward (`later_backward.SavedCall`). Out: `CompiledBackward`, one
for each stage of the call. The engine runs stages together where they follow each other and user
code cannot look in between. `record_no_gradient` is for results whose history is freed already, or
leads nowhere. Made by `attach_backward`, `native_history` and `outputs`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from tracejit.core.eager.nodes import FREED, Edge, Node, next_number
from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.core.memory import Storage
from tracejit.core.memory.readers import Before, reads_no_more
from tracejit.jit.runtime.backward_plan import EVERYTHING, BackwardStage


class CompiledBackward(Node):
    """History of some of a captured call's results: one of its stages.

    call    what the nodes of one call share; None where all is freed
    stage   its number; `common`: the plan's record of the stage
    runs    groups that the backward in progress frees, as bits
    freed   groups that earlier backwards freed
    """

    __slots__ = ("call", "stage", "common", "runs", "freed")
    common: BackwardStage
    opaque = partial_edges = True

    def __init__(self, edges: tuple[Edge, ...], call: Any, stage: int):
        self.edges, self.sequence, self.extras = edges, next_number(), None
        self.call, self.stage, self.common = call, stage, call.plan.stages[stage]
        self.runs = self.freed = 0

    @property
    def output_count(self) -> int:  # type: ignore[override]
        return len(self.common.results)

    def apply(self, grads: list) -> Sequence[Any]:
        return self.apply_all({self: grads}, [EVERYTHING], ())[0]

    def apply_all(self, parts: Mapping[Node, list], wanted: Sequence[int], shown: Sequence[int]
                  ) -> list[list[Any]]:
        """Return the gradients of nodes of this call that follow each other, this one first.

        wanted  for each node the edges asked for, as bits
        shown   for each node the edges at which user code may look; empty unless `asks`
        """
        call = self.call
        if call is None:
            raise RuntimeError(FREED)
        return call.run(parts, wanted, tuple(shown))

    def stops(self, results: Sequence[int]) -> int:
        """Return as bits what a backward frees that ends at these results and keeps their
        gradients.

        The nodes that made the results run in the plain backward. Raises RuntimeError where they
        are freed, or memory that they keep was written.
        """
        call = self.call
        if call is None:
            raise RuntimeError(FREED)
        own = functools.reduce(operator.or_, [self.common.own[k] for k in results], 0)
        if self.gone(own):
            raise RuntimeError(FREED)
        if not call.over:
            call.check({n for k in results for n in self.common.own_kept[k]})
        return own

    def edges_behind(self, number: int) -> Sequence[int]:
        reached = self.common.reached
        if not reached:
            return range(len(self.edges))
        return [k for k, mask in enumerate(reached) if mask >> number & 1]

    def leading(self, wanted: int) -> int:
        """Return the results that lead to the `wanted` edges. Both are bits."""
        reached = self.common.reached
        if not reached:
            return EVERYTHING
        return functools.reduce(
            operator.or_, [mask for k, mask in enumerate(reached) if wanted >> k & 1], 0)

    @property
    def asks(self) -> bool:
        """Return True if the backward needs to know where user code looks: some gradient may be a
        view."""
        return self.call.plan.viewed

    @property
    def watched(self) -> bool:
        """Return True if anomaly mode checks the nodes of the rebuilt tape itself."""
        return self.call.plan.tape is not None and not self.call.plan.final

    @property
    def joins(self) -> bool:
        """Return True if stages that follow each other may run as one program.

        They may not where user code could tell, or where `vmap` maps over the gradients. They may
        not after a write to an input that the backward computes from again.
        """
        call, tracer = self.call, active.tracer
        tape = call.plan.tape
        return not (tape is not None and tape.code_paths or tracer is not None and tracer.mapped
                    or call.old and call.moved(False))

    def release(self, own: int = 0) -> None:
        """Free what the last backward ran, and the groups `own`."""
        if self.call is not None and self.call.freed is not None:
            self.call.freed.by_stage(self.stage, self.runs | own)
        self.free(self.runs | own)

    def free(self, bits: int) -> None:
        """Free these groups. Once all are freed, the node lets go of its call."""
        if self.call is None or self.call.over:
            return  # all is freed
        self.freed |= bits
        everything = (1 << len(self.common.freed)) - 1
        if everything and self.freed == everything:
            self.freed = self.gone(everything)
            self.call = self.call.spent(self.stage, self.freed)
            reads_no_more(self)

    def gone(self, bits: int) -> int:
        """Return which of these groups are freed. A group that the program never made cannot be."""
        found = bits & self.freed
        if self.call is None or self.call.over:
            return found
        for k, condition in enumerate(self.common.free_conditions) if found else ():
            if condition is not None and found >> k & 1 and not self.call.was(condition):
                found &= ~(1 << k)
        return found

    @property
    def ends(self) -> tuple[Edge, ...]:
        """Return the edges of the inputs' gradients, for a call with one stage."""
        return self.edges

    def about_to_write(self, storage: Storage, before: Before) -> None:
        """Tell the call before memory is written, for a call with one stage."""
        if self.call is not None and not self.call.over:
            self.call.about_to_write(storage, before)


class NoGradient(Node):
    """History of a result from which no gradient arrives anywhere."""

    __slots__ = ()

    def __init__(self) -> None:
        self.edges, self.sequence, self.extras = (), next_number(), None

    def apply(self, grads: list) -> Sequence[Any]:
        return []

    def name(self) -> str:
        return "CompiledBackward"


class FreedBackward(NoGradient):
    """History of a loss whose graph a backward inside the call has freed.

    A further backward raises, as in eager mode.
    """

    __slots__ = ()

    def apply(self, grads: list) -> Sequence[Any]:
        raise RuntimeError(FREED)


def record_no_gradient(tensor: Tensor, kind: type[NoGradient]) -> None:
    """Give a tensor a history of this kind."""
    tensor._node, tensor._output_nr, tensor._requires_grad = kind(), 0, True
