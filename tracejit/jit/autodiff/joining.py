"""Backward graph in which what one stage gives goes to the next.

In: a graph with an input for the gradient at each place where the history is cut, and what the
stages above send there.
Out: the graph without the cuts. Called when a backward goes through several stages of a call at
once, which is one program then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tracejit.core.ops.record import REGISTRY
from tracejit.jit.ir.clone import copy_graph
from tracejit.jit.ir.graph import Graph, Value


def joined(
    graph: Graph, sent: Mapping[Value, Value], arriving: Collection[Value]
) -> tuple[Graph, dict[Value, Value]]:
    """(copy, values of the original -> of the copy). `sent`: inputs -> what takes their place, and
    is added to them if they are `arriving` as well. Nodes stand after what they are sent."""
    copy, values = copy_graph(graph)
    instead = {values[t]: values[g] for t, g in sent.items()}
    also = {values[t] for t in arriving}
    known: dict[Value, Value] = {}

    def now(value: Value) -> Value:
        if value not in instead:
            return value
        if value not in known:
            found = now(instead[value])
            if value in also:
                found = copy.append(REGISTRY["add"], (value, found), {})
            known[value] = found
        return known[value]

    nodes, copy.nodes = copy.nodes, []
    for node in nodes:
        node.inputs = tuple([now(x) if isinstance(x, Value) else x for x in node.inputs])
        copy.nodes.append(node)
    copy.outputs = [now(v) for v in copy.outputs]
    return copy, values
