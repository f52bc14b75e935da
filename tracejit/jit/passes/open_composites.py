"""Replace composite ops by their bodies.

In: a Graph. Out: the same Graph, where composites (softmax, gelu, losses ...) are the ops that they
are made of. First pass of the pipeline: capture and autodiff see each composite as one node. With
`numerics="eager"` a composite with an `eager` of its own stays closed, and so does a fused one.

>>> from tracejit.jit.ir.parser import parse_graph
>>> print(open_composites(parse_graph('''graph g(in0: float32[2, 3] "x"):
...   %0: float32[2, 3] = softmax(%in0, dim=1)
...   return %0''')))
graph g(in0: float32[2, 3] "x"):
  %0: float32[2, 1] = amax(%in0, dims=(1,), keepdim=True)  # [open: from %0 softmax]
  %1: float32[2, 3] = sub(%in0, %0)  # [open: from %0 softmax]
  %2: float32[2, 3] = exp(%1)  # [open: from %0 softmax]
  %3: float32[2, 1] = sum(%2, dims=(1,), keepdim=True)  # [open: from %0 softmax]
  %4: float32[2, 3] = div(%2, %3)  # [open: from %0 softmax]
  return %4
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.ops.composite import has_fused_types
from tracejit.core.ops.record import Op
from tracejit.jit.ir.graph import Graph, Node
from tracejit.jit.passes.rewrite import Rule, rewrite


def open_composites(graph: Graph, numerics: str = "fast") -> Graph:
    """Replace composite nodes by their bodies, nested ones too.

    With numerics="eager" a composite stays closed that eager mode does not compute by its body: it
    has an `eager` of its own, or is a fused op of float32 or float64 with other bits.
    """
    def rules_of(op: Op) -> Sequence[Rule]:
        if op.body is None or numerics == "eager" and op.eager is not None:
            return ()
        closed = numerics == "eager" and op.fused not in ("", "exact")
        return (_unless_fused,) if closed else (_body,)

    return rewrite(graph, "open", rules_of)


def _unless_fused(graph: Graph, node: Node) -> Any:
    on_cpu = all(v.type.device.type == "cpu" for v in node.outputs)
    return None if on_cpu and has_fused_types(node.op, node.inputs) else _body(graph, node)


def _body(graph: Graph, node: Node) -> Any:
    """Return the body's outputs. Guards on sizes name the composite's line."""
    assert node.op.body is not None
    before = graph.scope.where
    graph.scope.where = lambda: str(node.location or node.op.name)
    try:
        return node.op.body(*node.inputs, **node.attributes)
    finally:
        graph.scope.where = before
