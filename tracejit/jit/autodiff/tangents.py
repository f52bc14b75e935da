"""Gradients that the graph does not compute from a tangent: zeros from `floor`, or a hook's result.

In: the gradients that a backward pass over a recording starts from, and those that nodes and hooks
make of them. Out: the same gradients, each linked to a tangent by a node of the graph. So
`prune.py` leaves them out when that tangent does not arrive. Used by `differentiate.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.eager.conditional_grad import ConditionalGrad, grad_of
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.composite import follow
from tracejit.jit.ir.graph import Value


class TangentTracker:
    """Tracker of the values that depend on the tangents of a backward pass."""

    def __init__(self, tracer: Any):
        self.tracer = tracer
        self.late: set[Value] = set()
        self.seen = len(tracer.graph.nodes)

    def starts(self, tangent: Tensor) -> Tensor:
        """Register a tangent and return it."""
        self.late.add(self.tracer.traced(tangent).read())
        return tangent

    def linked(self, given: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        """Return the `results` that were made of gradients `given`, each dependent on one of
        these."""
        source = next((grad_of(g) for g in given if isinstance(grad_of(g), Tensor)), None)
        return [g if source is None else self._linked(source, g) for g in results]

    def _linked(self, source: Tensor, grad: Any) -> Any:
        if type(grad) is ConditionalGrad:
            return ConditionalGrad(self._linked(source, grad.grad), grad.condition)
        if not isinstance(grad, Tensor) or self._is_late(grad):
            return grad
        return self.tracer.run(follow, (grad, source), {})

    def _is_late(self, grad: Tensor) -> bool:
        value = self.tracer.traced(grad).read()
        nodes = self.tracer.graph.nodes
        for node in nodes[self.seen:]:
            if any(v in self.late for v in node.operand_values()):
                self.late.update(node.outputs)
        self.seen = len(nodes)
        return value in self.late
