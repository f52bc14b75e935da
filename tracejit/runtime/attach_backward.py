"""The results of a replay get their history: nodes on the tape.

In: the plan of a recorded call's gradients, the tensors of one call. Out: `attach_backward`. Called
by `entry` after each run, and by `entry_maker` for the recorded call itself.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from tracejit.capture.snapshot import Snapshot
from tracejit.eager.nodes import Edge, edge_of
from tracejit.eager.recording import active
from tracejit.eager.saved import packing
from tracejit.eager.tensor import Tensor
from tracejit.ops.types import FLOATING
from tracejit.runtime.backward_plan import Backward
from tracejit.runtime.call_nodes import CompiledBackward
from tracejit.runtime.later_backward import Call, below
from tracejit.runtime.segment import Bound


def attach_backward(
    plan: Backward,
    inputs: Sequence[Any],
    roots: Sequence[Tensor],
    outputs: Sequence[Any],
    bound: Bound,
    snapshot: Snapshot | None = None,
) -> None:
    """Make `outputs` the results of nodes whose backward runs compiled programs.

    snapshot  what vouches for the inputs but its `loose` ones: they are what they were
    """
    with nullcontext() if active.packer is None else packing(None):
        call = Call(plan, inputs, roots, outputs, bound)
    ends = _ends(plan, call, snapshot)
    nodes: list[CompiledBackward | None] = []
    for number, stage in enumerate(plan.stages):
        edges = ends if plan.straight else tuple(
            [below(plan, nodes, ends, k) for k in stage.edges])
        if not any(edges):
            nodes.append(None)
            continue
        node = CompiledBackward(edges, call, number, len(stage.results))
        node.everything, node.reached = (1 << len(stage.freed)) - 1, stage.reached
        nodes.append(node)
    for (number, k), x in zip(plan.places, outputs):
        if nodes[number] is not None and x._dtype.category >= FLOATING:
            x._node, x._output_nr, x._requires_grad = nodes[number], k, True
    call.ends, call.nodes = ends, [None if node is None else weakref.ref(node) for node in nodes]
    plan.last = weakref.ref(call), snapshot


def _ends(plan: Backward, call: Call, snapshot: Snapshot | None) -> tuple[Edge, ...]:
    """Where the gradients of inputs go: as in the last call, where nothing changed since."""
    last, before = plan.last
    known = None if snapshot is None or before is not snapshot else last()
    if snapshot is None or known is None:
        return tuple([edge_of(x) if x._requires_grad else None for x in call.wrt()])
    loose = [n for n in snapshot.loose if n in plan.ends]
    if not loose:
        return known.ends
    ends = list(known.ends)
    for n in loose:
        x = call.inputs[n]
        ends[plan.ends[n]] = edge_of(x) if x._requires_grad else None
    return tuple(ends)
