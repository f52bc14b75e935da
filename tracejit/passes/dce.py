"""What nobody reads is not computed, and what is already there is not written.

In: a Graph. Out: the same Graph without nodes that no output and no write depends on, and without
writes of an input to itself. Nodes that may fail stay: what raises must raise, read or not.
Last pass of the pipeline; the rewriting passes leave what they replaced for this one. Inputs stay:
they are the calling convention.
"""

from __future__ import annotations

from tracejit.ir.graph import Graph


def dce(graph: Graph, numerics: str = "fast") -> Graph:
    """Drop dead nodes and dead writes."""
    graph.writes = [(target, v) for target, v in graph.writes if v is not target]
    live = set(graph.results())
    nodes = []
    for node in reversed(graph.nodes):
        if node.may_fail or any(v in live for v in node.outputs):
            live.update(node.operand_values())
            nodes.append(node)
    graph.nodes = nodes[::-1]
    return graph
