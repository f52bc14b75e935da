"""What nobody reads is not computed, and what is already there is not written.

In: a Graph. Out: the same Graph without nodes that no output and no write depends on, and without
writes of an input to itself; of nodes with regions only what is read is left (`dead_regions`).
Nodes that may fail stay: what raises must raise, read or not. Last pass of the pipeline; the
rewriting passes leave what they replaced for this one. Inputs of the graph stay: they are the
calling convention.
"""

from __future__ import annotations

from tracejit.jit.ir.graph import Graph
from tracejit.jit.passes.dead_regions import trim


def dce(graph: Graph, numerics: str = "fast") -> Graph:
    """Drop dead nodes and dead writes, in the graph and in its regions."""
    graph.writes = [(target, v) for target, v in graph.writes if v is not target]
    live = set(graph.results())
    nodes = []
    for node in reversed(graph.nodes):
        if node.may_fail or any(v in live for v in node.outputs):
            if node.regions:
                trim(graph, node, live, dce)
            live.update(node.operand_values())
            nodes.append(node)
    graph.nodes = nodes[::-1]
    return graph
