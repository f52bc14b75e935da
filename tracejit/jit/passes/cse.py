"""Merge common subexpressions: compute each once.

In: a Graph. Out: the same Graph, where no two nodes apply the same op to the same operands and
attributes. After opening composites the backward half repeats much of the forward half (softmax,
statistics of a normalisation); this pass merges them. Random draws are equal exactly when state and
offset are, and those are operand and attribute.

>>> from tracejit.jit.ir.parser import parse_graph
>>> print(cse(parse_graph('''graph g(in0: float32[2] "x"):
...   %0: float32[2] = exp(%in0)
...   %1: float32[2] = exp(%in0)
...   %2: float32[2] = add(%0, %1)
...   return %2''')))
graph g(in0: float32[2] "x"):
  %0: float32[2] = exp(%in0)
  %1: float32[2] = add(%0, %0)
  return %1
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from tracejit.jit.ir.digest import static_key
from tracejit.jit.ir.graph import Graph, Node, Value


def cse(graph: Graph, numerics: str = "fast") -> Graph:
    """Merge equal nodes into the first of them; nodes with regions are left alone.

    Whether a node is detached does not matter: differentiation is done.
    """
    first: dict[Hashable, Node] = {}
    replaced: dict[Value, Value] = {}
    nodes = []
    for node in graph.nodes:
        if replaced:
            node.inputs = tuple(replaced.get(x, x) if isinstance(x, Value) else x
                                for x in node.inputs)
        same = first.setdefault(_key(node), node)
        if same is node:
            nodes.append(node)
        else:
            replaced.update(zip(node.outputs, same.outputs))
    graph.nodes = nodes
    graph.outputs = [replaced.get(v, v) for v in graph.outputs]
    graph.writes = [(target, replaced.get(v, v)) for target, v in graph.writes]
    return graph


def _key(node: Node) -> Hashable:
    if node.regions:
        return id(node)
    attributes: Any = node.attributes
    if attributes:
        attributes = tuple((name, static_key(attributes[name])) for name in sorted(attributes))
    else:
        attributes = ()
    return (node.op, tuple(id(x) if isinstance(x, Value) else static_key(x) for x in node.inputs),
            attributes)
