"""Gradients within a region, and the node of the tape that runs a gradient region.

In: a recorded region, tensors it gives, tensors it depends on. Out: tangents and gradients as
values of the region's graph (`pull_back`); `ControlBackward`, what the tape calls. Used by
`regions.py` and `loops.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from tracejit.capture.breaks import Refused
from tracejit.capture.region import RegionRecorder, trial
from tracejit.eager.backward import grad_between
from tracejit.eager.modes import enable_grad, no_grad
from tracejit.eager.recording import active, settled
from tracejit.eager.state import of_array
from tracejit.eager.tensor import Tensor
from tracejit.ir.graph import Graph, Value
from tracejit.ir.interpret import InterpretedRegion, at_size, run_tensors
from tracejit.ops.control import run_over_tensors
from tracejit.ops.creation import zeros_of
from tracejit.ops.record import Op
from tracejit.ops.types import TensorType


def pull_back(region: RegionRecorder, outputs: Sequence[Tensor], wrt: Sequence[Tensor]
              ) -> tuple[list[Value], list[Value | None]]:
    """Tangents (new inputs of the region's graph, one for each output) and the gradient values of
    `wrt` (None where nothing arrives)."""
    quiet = [(x, x._hooks) for x in wrt]
    for x in wrt:
        x._hooks = None  # hooks of what comes from outside run where its gradient arrives
    region.differentiating = True
    try:
        with trial(region), enable_grad():
            tangents = [region.tangent(x) for x in outputs]
            tracked = [k for k, x in enumerate(outputs) if x._requires_grad]
            reachable = [x for x in wrt if x._requires_grad]
            found = iter(grad_between([outputs[k] for k in tracked], reachable,
                                      [tangents[k] for k in tracked]))
            grads = [next(found) if x._requires_grad else None for x in wrt]
            return ([region.traced(t).read() for t in tangents],
                    [None if g is None else region.traced(g).read() for g in grads])
    except Exception as error:
        raise Refused(f"its backward would fail: {type(error).__name__}: {error}") from error
    finally:
        region.differentiating = False
        for x, hooks in quiet:
            x._hooks = hooks


class ControlBackward:
    """Runs a gradient node; what the tape calls.

    operands  of the node: a Tensor, the number of a tangent, or a TensorType (zeros of it)
    types     of the tangents
    places    for each input of the tape's node the number of the gradient among the outputs
    reached   for each input the tangents that reach it: without them it has no gradient
    """

    holds_tensors = True

    def __init__(self, op: Op, attributes: dict, regions: tuple[Graph, ...], operands: list[Any],
                 types: Sequence[TensorType], places: Sequence[int | None],
                 reached: Sequence[frozenset[int]]):
        self.op, self.attributes, self.regions = op, attributes, regions
        self.operands, self.types, self.places = operands, types, places
        self.reached = reached

    def __call__(self, grads: tuple, create_graph: bool) -> list[Any]:
        operands: list[Any] = []
        for x in self.operands:
            if type(x) is int:
                x = self.types[x] if grads[x] is None else grads[x]
            operands.append(zeros_of(None, settled(x)) if type(x) is TensorType else x)
        made = run_node(self.op, operands, settled(self.attributes), self.regions, create_graph)
        given = frozenset(k for k, grad in enumerate(grads) if grad is not None)
        return [None if k is None or not reached & given else made[k]
                for k, reached in zip(self.places, self.reached)]


class OverTensors(InterpretedRegion):
    """A region run on tensors, also where the forward loop kept arrays."""

    def __call__(self, *inputs: Any) -> list[Any]:
        given = [x if isinstance(x, Tensor) else of_array(np.asarray(x)) for x in inputs]
        return super().__call__(*given)


def run_node(op: Op, operands: Sequence[Tensor], attributes: dict, regions: tuple[Graph, ...],
             create_graph: bool) -> Sequence[Tensor]:
    """A node with regions, over tensors: recorded, or run op by op."""
    recorder: Any = active.recorder
    if create_graph and recorder is not None:
        recorder.need(None, "a second derivative is taken through control flow")
    # Sizes of a segment that is over are no sizes of this one: then it runs op by op.
    if recorder is not None and not create_graph and regions[0].scope is recorder.graph.scope:
        values = [recorder._operand(x) for x in operands]
        return recorder.control(op, values, attributes, regions)
    scope = regions[0].scope
    sizes = scope.complete(dict(scope.hints))
    ready = tuple([OverTensors(region, sizes, run_tensors) for region in regions])
    given = {name: at_size(x, sizes) for name, x in attributes.items()}
    with nullcontext() if create_graph else no_grad():
        return run_over_tensors(op, operands, regions=ready, **given)
