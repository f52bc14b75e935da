"""Gradients within a region, and the backward that runs a gradient region.

In: a traced region, tensors it gives, tensors it depends on. Out: tangents and gradients as values
of the region's graph (`vjp`); `ControlFlowVjp`, which a node of the tape calls. Used by
`cond_vjp.py` and `loop_vjp.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tracejit.core.eager.backward import grad_between
from tracejit.core.eager.conditional_grad import (
    ConditionalGrad,
    condition_of,
    filled,
    grad_of,
    if_true,
    resolved,
    under,
)
from tracejit.core.eager.modes import enable_grad, no_grad
from tracejit.core.eager.nodes import Edge, edge_of
from tracejit.core.eager.recording import active, ended_to_hints
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.control import run_over_tensors
from tracejit.core.ops.creation import full_of, zeros_of
from tracejit.core.ops.record import Op
from tracejit.core.ops.stacks import stack_run
from tracejit.core.ops.types import TensorType, bool_
from tracejit.jit.autodiff.eager_vjp import EagerVjp, eager_vjp, without_derivatives
from tracejit.jit.autodiff.outer_saves import OuterSaves
from tracejit.jit.autodiff.prune import prune_keep_outputs
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.subgraph import SubgraphTracer, speculate
from tracejit.jit.ir.graph import Graph, Value
from tracejit.jit.ir.interpret import at_size, regions_over_tensors


def vjp(region: SubgraphTracer, outputs: Sequence[Tensor], wrt: Sequence[Tensor],
        flags: Sequence[Value] = ()) -> tuple[list[Value], list[Value | None], list[Any]]:
    """Differentiate a region. Return three lists:

    - tangents: new inputs of the region's graph, one for each output
    - gradients of `wrt`: values, or None where nothing arrives
    - for each of these when it arrives: a bool or its value

    `flags`: when the tangents arrive; none: always.
    """
    quiet = [(x, x._hooks) for x in wrt]
    for x in wrt:
        x._hooks = None  # hooks of what comes from outside run where its gradient arrives
    region.differentiating = True
    try:
        with speculate(region), enable_grad():
            tangents = [region.tangent(x) for x in outputs]
            tracked = [k for k, x in enumerate(outputs) if x._requires_grad]
            reachable = [x for x in wrt if x._requires_grad]
            given: list[Any] = tangents
            if flags:
                given = [ConditionalGrad(t, if_true(region.untracked(flag)))
                         for t, flag in zip(tangents, flags)]
            found = iter(grad_between([outputs[k] for k in tracked], reachable,
                                      [given[k] for k in tracked]))
            grads = [next(found) if x._requires_grad else None for x in wrt]
            conditions = [condition_of(g) for g in grads]
            grads = [grad_of(g) for g in grads]
            must_be_dense(grads, "its backward gives a sparse gradient")
            return ([region.traced(t).read() for t in tangents],
                    [None if g is None else region.traced(g).read() for g in grads],
                    [c if type(c) is bool else region.traced(c.tensor()).read()
                     for c in conditions])
    except Exception as error:
        raise RegionRefused(f"its backward would fail: {type(error).__name__}: {error}") from error
    finally:
        region.differentiating = False
        for x, hooks in quiet:
            x._hooks = hooks


def must_be_dense(grads: Iterable[Any], reason: str) -> None:
    """Raise RegionRefused if a gradient is sparse: gradient graphs give dense tensors."""
    if any(g is not None and g.is_sparse for g in grads):
        raise RegionRefused(reason)


class ArrivalFlag:
    """Operand of a gradient node: True if tangent `number` arrives."""

    def __init__(self, number: int):
        self.number = number


class ControlFlowVjp:
    """Backward of a branch or a loop: runs the gradient node. A node of the tape calls it.

    operands  of the gradient node: a Tensor, the number of a tangent, an `ArrivalFlag`, or a
              TensorType (zeros of it)
    types     of the tangents
    places    for each input of the tape's node the number of its gradient among the outputs
    arrival   given the operands, when the tangents arrive and what the node gave: for each input
              when its gradient does (bools and Conditions)
    covers    sets of tangents; where one of each set arrives, zeros for the rest go unnoticed
    masked    backward with flags that runs where such zeros could be noticed
    kept      record of memory that must not have been written since
    again     backward that runs instead where the gradients are to be differentiated
    """

    holds_tensors = takes_conditional = True
    reached: Sequence[frozenset[int]]  # for each input the tangents that may reach it

    def __init__(self, op: Op, attributes: dict, regions: tuple[Graph, ...], operands: list[Any],
                 types: Sequence[TensorType], places: Sequence[int | None],
                 reached: Sequence[frozenset[int]],
                 arrival: Callable[[Sequence[Any], Sequence[Any], Sequence[Tensor]], list[Any]],
                 covers: Sequence[frozenset[int]] = (), masked: ControlFlowVjp | None = None):
        self.op, self.attributes, self.regions = op, attributes, regions
        self.operands, self.types, self.places = operands, types, places
        self.reached, self.arrival = reached, arrival
        self.covers, self.masked = covers, masked
        self.kept: OuterSaves | None = None
        self.again: EagerVjp | None = None
        self.edges: Sequence[Edge] = ()

    def intact(self) -> bool:
        return self.kept is None or self.kept.intact()

    def __call__(self, conditional: tuple, create_graph: bool) -> list[Any]:
        conditions, grads = [condition_of(g) for g in conditional], filled(conditional)
        if self.kept is not None:
            self.kept.check([k for k, c in enumerate(conditions) if c is not False])
        if create_graph:
            return self._differentiable(conditions, grads)
        return self._run(conditional, conditions, grads)

    def _differentiable(self, conditions: Sequence[Any], grads: Sequence[Any]) -> list[Any]:
        """Return gradients with a history."""
        tracer: Any = active.tracer
        if tracer is not None:
            tracer.break_graph(
                None, "the function takes a second derivative through a branch or a loop")
        if self.again is not None:
            return self.again(grads, True)
        with no_grad():
            found = self._run(grads, conditions, grads)
        known = [edge_of(g) for g in grads if g is not None and g._requires_grad]
        without_derivatives([x for x in found if x is not None], [*self.edges, *known])
        return found

    def _run(self, conditional: Sequence[Any], conditions: Sequence[Any], grads: Sequence[Any]
             ) -> list[Any]:
        if self.masked is not None and not self._covered(conditions):
            return self.masked(tuple(conditional), False)
        operands: list[Any] = []
        regions = self.regions
        # Without flags absent tangents are pruned from both sides; a loop gets zeros for them.
        pruned = self.op.name == "cond" and not any(type(x) is ArrivalFlag for x in self.operands)
        if pruned:
            absent = [k for k, grad in enumerate(grads) if grad is None]
            left = [prune_keep_outputs(r, r.inputs[:len(grads)], absent) for r in regions]
            if self.masked is not None and not all(x.exact for x in left):
                return self.masked(tuple(conditional), False)
            regions = tuple([x.graph for x in left])
        for x in self.operands:
            if type(x) is int:
                if grads[x] is None and pruned:
                    continue
                x = self.types[x] if grads[x] is None else grads[x]
            elif type(x) is ArrivalFlag:
                given = conditions[x.number]
                place = self.types[x.number].device
                x = (full_of(None, (), given, bool_, place) if type(given) is bool
                     else given.tensor())
            operands.append(zeros_of(None, ended_to_hints(x)) if type(x) is TensorType else x)
        made = run_node(self.op, operands, ended_to_hints(self.attributes), regions)
        arrival = self.arrival(operands, conditions, made)
        return resolved([None if k is None else under(arrives, made[k])
                         for k, arrives in zip(self.places, arrival)])

    def leads_to(self, parent: Any, inputs: Sequence[Any], results: Sequence[Tensor],
                 closed: bool) -> None:
        """Set the edges, and `again` if `closed`. `inputs`, `results`: of the tape's node;
        `closed`: the regions run no user code, their graphs do all."""
        self.edges = [edge_of(x) if x._requires_grad else None for x in inputs]
        self.again = eager_vjp(parent, inputs, results) if closed else None

    def _covered(self, conditions: Sequence[Any]) -> bool:
        given = [k for k, c in enumerate(conditions) if c is not False]
        alike = all(conditions[k] is conditions[given[0]] for k in given)
        return alike and all(any(k in cover for k in given) for cover in self.covers)


def run_node(op: Op, operands: Sequence[Tensor], attributes: dict, regions: tuple[Graph, ...]
             ) -> Sequence[Tensor]:
    """Run a node with regions over tensors: the tracer records it, or it runs op by op."""
    tracer: Any = active.tracer
    # A graph of an earlier segment has symbols that this one does not know: it runs op by op.
    if tracer is not None and regions[0].scope is tracer.graph.scope:
        values = [tracer._operand(x) for x in operands]
        return tracer.control(op, values, attributes, regions)
    scope = regions[0].scope
    sizes = scope.complete(dict(scope.hints))
    ready = regions_over_tensors(regions, sizes)
    given = {name: at_size(x, sizes) for name, x in attributes.items()}
    with stack_run(), no_grad():
        return run_over_tensors(op, operands, regions=ready, **given)
