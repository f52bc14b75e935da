"""Cut a joint graph into forward and backward: what is saved between them, what is computed again.

In: a graph holding forward and backward nodes, its tangent inputs. Out: the values to save.
Called by `differentiate` for captured calls whose results require grad (C4).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tracejit.ir.graph import Graph, Node, Value

_CHEAP = ("pointwise", "movement", "creation")


def residuals(graph: Graph, tangents: Sequence[Value], grads: Sequence[Value]) -> list[Value]:
    """Forward values the backward part reads: inputs and results of expensive nodes; cheap chains
    are recomputed."""
    late, given = dependent(graph, tangents), set(tangents)
    saved: dict[Value, None] = {}
    seen: set[Value] = set()
    stack = [g for g in grads if isinstance(g, Value)]
    while stack:
        value = stack.pop()
        if value in seen or value in given:
            continue
        seen.add(value)
        node = value.node
        if node is None or value not in late and not _recomputable(node):
            saved[value] = None
        else:
            stack.extend(node.operand_values())
    return _in_order(graph, saved)


def _recomputable(node: Node) -> bool:
    return node.op.kind in _CHEAP


def dependent(graph: Graph, sources: Iterable[Value]) -> set[Value]:
    """Values computed from `sources`."""
    found = set(sources)
    for node in graph.nodes:
        if any(v in found for v in node.operand_values()):
            found.update(node.outputs)
    return found


def _in_order(graph: Graph, values: dict[Value, None]) -> list[Value]:
    order = [v for v in graph.inputs if v in values]
    for node in graph.nodes:
        order.extend(v for v in node.outputs if v in values)
    return order
