"""Gradients that are views: of what arrived, or of memory that other gradients look at as well.

In: the deferred gradients of a recording.
Out: for each what it is a view of, and by which steps. Whoever asks a captured call for it gets
what the plain function gives: the same strides, the very tensor that arrived. Called by
`differentiate.py` and `jit/runtime/backward_plan.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tracejit.core.eager.modes import no_grad
from tracejit.core.ops.pointwise import stop_gradient
from tracejit.core.ops.record import Op
from tracejit.jit.capture.storage import substitute
from tracejit.jit.ir.graph import Value

Step = tuple[Op, dict]


class GradientView(NamedTuple):
    """Description of what a gradient is a view of.

    tangent  the number of the gradient that arrived, or -1
    memory   else what stands for the memory
    steps    view ops from there
    first    what stands for the tensor: the number of the first gradient that is the same one
    """

    tangent: int
    memory: Any
    steps: list[Step]
    first: Any


def gradient_views(tracer: Any, grads: Sequence[Any], tangents: Sequence[Any]
                   ) -> list[GradientView | None]:
    """For each gradient; None where it is memory of its own, in order."""
    arrived = {tracer.traced(t).memory: k for k, t in enumerate(tangents)}
    first: dict[int, int] = {}
    found: list[GradientView | None] = []
    owners: dict[Any, int] = {}
    for k, grad in enumerate(grads):
        traced = None if grad is None else tracer.traced(grad)
        if traced is None or any(operands for _, operands, _ in traced.views):
            found.append(None)
            continue
        memory = traced.memory
        tangent = -1 if memory.mutations else arrived.get(memory, -1)
        if tangent < 0 and memory.input_tensor is not None:
            found.append(None)
            continue
        owners[memory] = owners.get(memory, 0) + 1
        steps = [(op, attributes) for op, _, attributes in traced.views]
        found.append(GradientView(tangent, memory, steps, first.setdefault(id(grad), k)))
    return [v and (v._replace(memory=id(v.memory))
                   if v.tangent >= 0 or v.steps or owners[v.memory] > 1 else None) for v in found]


def chain(value: Value) -> tuple[Value, list[Step]]:
    """Return what a value is a view of, and the steps from there; `detach()` is none."""
    steps: list[Step] = []
    while value.node is not None and len(value.node.inputs) == 1 and (
            value.node.op.views or value.node.op is stop_gradient):
        if value.node.op.views:
            steps.append((value.node.op, value.node.attributes))
        value = value.node.inputs[0]
    return value, steps[::-1]


def seen_from(value: Value, steps: Sequence[Step]) -> Value | None:
    """Return the value that is seen through these steps as `value`, if the graph says so."""
    for op, _ in reversed(steps):
        if value.node is None or value.node.op is not op:
            return None
        value = value.node.inputs[0]
    return value


def look(tensor: Any, steps: Sequence[Step], sizes: Mapping[str, int]) -> Any:
    """Look at a tensor through steps."""
    with no_grad():
        for op, attributes in steps:
            tensor = op(tensor, **{k: substitute(v, dict(sizes)) for k, v in attributes.items()})
    return tensor
