"""Gradients that are views: of the gradient that arrived, or of memory that other gradients share.

In: the deferred gradients of a recording.
Out: for each the tensor that it is a view of, and the view steps. So a captured call gives the same
strides as the plain function, and the very tensor that arrived. Called by `differentiate.py` and
`jit/runtime/backward_plan.py`.
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
    """Base of a gradient that is a view, and the way there.

    tangent  the number of the gradient that arrived, or -1
    memory   key of the memory; gradients with the same key share it
    steps    view ops from the base to the gradient
    first    key of the tensor: the number of the first gradient that is this tensor
    """

    tangent: int
    memory: Any
    steps: list[Step]
    first: Any


def gradient_views(tracer: Any, grads: Sequence[Any], tangents: Sequence[Any]
                   ) -> list[GradientView | None]:
    """Return, for each gradient, its view. None where the gradient has memory of its own, in
    order."""
    arrived = {tracer.traced(t).memory: k for k, t in enumerate(tangents)}
    first: dict[int, int] = {}
    found: list[GradientView | None] = []
    owners: dict[Any, int] = {}
    for k, grad in enumerate(grads):
        traced = None if grad is None else tracer.traced(grad)
        # Steps keep attributes only: a view with tensor operands could not be repeated.
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
    """Return (base of a value, view steps from there to the value). `detach()` counts as no
    step."""
    steps: list[Step] = []
    while value.node is not None and len(value.node.inputs) == 1 and (
            value.node.op.views or value.node.op is stop_gradient):
        if value.node.op.views:
            steps.append((value.node.op, value.node.attributes))
        value = value.node.inputs[0]
    return value, steps[::-1]


def seen_from(value: Value, steps: Sequence[Step]) -> Value | None:
    """Return the value from which these steps lead to `value`. None if the graph does not show
    it."""
    for op, _ in reversed(steps):
        if value.node is None or value.node.op is not op:
            return None
        value = value.node.inputs[0]
    return value


def look(tensor: Any, steps: Sequence[Step], sizes: Mapping[str, int]) -> Any:
    """Apply view steps to a tensor, at these sizes."""
    with no_grad():
        for op, attributes in steps:
            tensor = op(tensor, **{k: substitute(v, dict(sizes)) for k, v in attributes.items()})
    return tensor
