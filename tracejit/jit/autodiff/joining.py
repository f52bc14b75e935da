"""Join the stages of a backward graph: the gradients that one stage gives go to the next.

In: a graph with an input for the gradient at each cut of the history, and the gradients that the
stages above send there.
Out: the graph without the cuts. Called when one backward goes through several stages of a call,
which is one program then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tracejit.core.ops.record import REGISTRY
from tracejit.jit.ir.clone import copy_graph
from tracejit.jit.ir.graph import Graph, Value


def joined(
    graph: Graph, sent: Mapping[Value, Value], arriving: Collection[Value]
) -> tuple[Graph, dict[Value, Value]]:
    """Return the joined copy, and {original value: copied value}.

    sent      input -> value that takes its place; its nodes stand before those that read the input
    arriving  inputs that also get a gradient from outside: the value is added to it
    """
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
