"""Drop nodes that nobody reads, and writes of a value to its own memory.

In: a Graph. Out: the same Graph without nodes that no output and no write depends on, and without
writes of an input to itself. Nodes with regions keep only what is read (`dead_regions`). Nodes that
may fail stay: what raises must raise, read or not. Last pass of the pipeline: the rewriting passes
leave the nodes that they replaced for this one. Inputs of the graph stay: they are the calling
convention.

>>> from tracejit.jit.ir.parser import parse_graph
>>> print(dce(parse_graph('''graph g(in0: float32[2] "x"):
...   %0: float32[2] = exp(%in0)
...   %1: float32[2] = neg(%in0)
...   return %1''')))
graph g(in0: float32[2] "x"):
  %0: float32[2] = neg(%in0)
  return %0
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
        if node.stays or any(v in live for v in node.outputs):
            if node.regions:
                trim(graph, node, live, dce)
            live.update(node.operand_values())
            nodes.append(node)
    graph.nodes = nodes[::-1]
    return graph
