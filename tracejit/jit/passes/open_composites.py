"""Composite nodes become the ops they are written in.

In: a Graph. Out: the same Graph without composite nodes, except those that must stay closed. First
pass of the pipeline, after differentiation, which wants composites whole for the sake of their own
rules.
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
    """The body's outputs; what it asks of sizes is guarded in the name of the composite's line."""
    assert node.op.body is not None
    before = graph.scope.where
    graph.scope.where = lambda: str(node.location or node.op.name)
    try:
        return node.op.body(*node.inputs, **node.attributes)
    finally:
        graph.scope.where = before
