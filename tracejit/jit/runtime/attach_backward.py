"""History for the results of a replay: nodes on the tape.

In: the plan of a recorded call's gradients, the tensors of one call. Out: `attach_backward`. Called
by `entry` after each run, and by `build` for the recorded call itself.

A call reuses what the last call worked out: the edges of its inputs, and the native function that
makes the nodes.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from tracejit.core.eager.nodes import Edge, edge_of, nobody
from tracejit.core.eager.tensor import Tensor
from tracejit.core.memory.readers import Before, reads, shown
from tracejit.jit.capture.snapshot import GuardSnapshot
from tracejit.jit.runtime.backward_plan import BackwardPlan
from tracejit.jit.runtime.call_nodes import CompiledBackward
from tracejit.jit.runtime.compiled_graph import BoundGraph
from tracejit.jit.runtime.later_backward import SavedCall, below
from tracejit.jit.runtime.native_history import Lay, layer, lays


def attach_backward(
    plan: BackwardPlan,
    inputs: tuple,
    roots: list[Tensor],
    outputs: list[Any],
    bound: BoundGraph,
    snapshot: GuardSnapshot | None = None,
) -> None:
    """Make `outputs` the results of nodes whose backward runs compiled programs.

    snapshot  proves that inputs are those of the last call with it, except its `uncovered` ones
    """
    last, like, uncovered, lay = plan.last
    if like is not snapshot:
        last, uncovered, lay = nobody, *_of_snapshot(plan, snapshot)
    known = last()
    if known is None:
        ends = _ends(plan, inputs)
    else:
        ends = _ends_but(plan, inputs, known.ends, uncovered) if uncovered else known.ends
    made = roots[plan.first :]
    at: Any = None  # weak, to what lives as long as the history
    if lay is not None:
        at = lay(inputs, outputs, made, bound, ends)
        if at is not None and plan.keeps:
            reader = at()
            (reader.call if plan.straight else reader).keep(roots, outputs)
    if at is None:
        call = SavedCall(plan, inputs, made, bound, ends)
        if plan.keeps:
            call.keep(roots, outputs)
        call.remember_versions()
        reader = _laid(call, outputs)
        at = reads(reader) if plan.remembers else weakref.ref(reader)
    plan.last = nobody if snapshot is None else at, snapshot, uncovered, lay
    if shown.places and plan.remembers:
        _keep_shown(plan, at(), inputs, snapshot)


def _of_snapshot(plan: BackwardPlan, snapshot: GuardSnapshot | None
                 ) -> tuple[tuple[int, ...], Lay | None]:
    """Return the inputs with gradients that a snapshot does not cover, and the native maker of the
    nodes or None."""
    if snapshot is None:
        return (), None
    if plan.lay is None and lays(plan):
        plan.lay = layer(plan)
    return tuple([n for n in snapshot.uncovered if n in plan.ends]), plan.lay


def _ends(plan: BackwardPlan, inputs: Sequence[Any]) -> tuple[Edge, ...]:
    """Return the edges to which the gradients of inputs go."""
    return tuple([edge_of(x) if x._requires_grad else None for x in plan.sought(inputs)])


def _ends_but(plan: BackwardPlan, inputs: Sequence[Any], known: Sequence[Edge],
              uncovered: Sequence[int]
              ) -> tuple[Edge, ...]:
    """Return the edges of the last call, with those of the uncovered inputs read again."""
    ends = list(known)
    for n in uncovered:
        ends[plan.ends[n]] = edge_of(inputs[n]) if inputs[n]._requires_grad else None
    return tuple(ends)


def _laid(call: SavedCall, outputs: Sequence[Any]) -> CompiledBackward | SavedCall:
    """Make the nodes of a call in Python. Return what lives as long as its history: the node of a
    call with one stage, else the call."""
    plan = call.plan
    nodes: list[CompiledBackward | None] = []
    for number, stage in enumerate(plan.stages):
        outer = plan.outer[number]
        edges = [below(plan, nodes, call.ends, k) for k in stage.edges] if outer is None else (
            outer(call.ends))
        nodes.append(CompiledBackward(tuple(edges), call, number) if any(edges) else None)
    for (number, k), x in zip(plan.places, outputs):
        if nodes[number] is not None:
            x._node, x._output_nr, x._requires_grad = nodes[number], k, True
    call.nodes = [None if node is None else weakref.ref(node) for node in nodes]
    return nodes[0] or call if plan.straight else call


def _keep_shown(plan: BackwardPlan, reader: Any, inputs: Sequence[Any],
                snapshot: GuardSnapshot | None
                ) -> None:
    """Copy the inputs that the backward computes values from again, where NumPy could write them.

    NumPy's writes tell no reader. Inputs that the snapshot covers are looked at again only after
    more memory was shown.
    """
    looked = snapshot, shown.count
    uncovered = () if snapshot is None else snapshot.uncovered
    again = plan.hidden == looked
    numbers = [n for n in uncovered if n in plan.remembered] if again else plan.remembers
    found = {n: inputs[n]._storage for n in numbers if inputs[n]._storage in shown}
    for storage in found.values():
        reader.about_to_write(storage, Before(storage))
    if snapshot is not None and found.keys() <= set(uncovered):
        plan.hidden = looked
