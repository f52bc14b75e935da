"""Replace composite ops by their bodies.

In: a Graph. Out: the same Graph, where composites (softmax, gelu, losses ...) are the ops that they
are made of. First pass of the pipeline: capture and autodiff see each composite as one node. With
`numerics="eager"` a composite with an `eager` of its own stays closed.

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

from tracejit.core.ops.record import Op
from tracejit.jit.ir.graph import Graph, Node
from tracejit.jit.passes.rewrite import Rule, rewrite


def open_composites(graph: Graph, numerics: str = "fast") -> Graph:
    """Replace composite nodes by their bodies, nested ones too.

    With numerics="eager" a composite that has an `eager` of its own stays closed: eager mode gives
    that function's bits, not the body's.
    """
    def rules_of(op: Op) -> Sequence[Rule]:
        return (_body,) if op.body is not None and (numerics == "fast" or op.eager is None) else ()

    return rewrite(graph, "open", rules_of)


def _body(graph: Graph, node: Node) -> Any:
    """Return the body's outputs. Guards on sizes name the composite's line."""
    assert node.op.body is not None
    before = graph.scope.where
    graph.scope.where = lambda: str(node.location or node.op.name)
    try:
        return node.op.body(*node.inputs, **node.attributes)
    finally:
        graph.scope.where = before
