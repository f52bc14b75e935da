"""Cut a joint graph into forward and backward: what is saved between them, what is computed again.

In: a graph holding forward and backward nodes, its tangent inputs. Out: the values to save.
Called by `differentiate` for captured calls whose results require grad (C4).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tracejit.ir.graph import Graph, Node, Value

_CHEAP = ("pointwise", "movement", "creation")


def residuals(
    graph: Graph,
    tangents: Sequence[Value],
    grads: Sequence[Value],
    readable: Collection[Value] | None = None,
    live: Collection[Value] = (),
) -> list[Value]:
    """Forward values the backward part reads: inputs and results of expensive nodes; cheap chains
    are recomputed, if they start at `readable` inputs (None: all): others may have changed. Of
    `live` values, which lie in the caller's memory, it makes views only."""
    late, given = dependent(graph, tangents), set(tangents)
    again = _computable(graph, graph.inputs if readable is None else readable, live)
    saved: dict[Value, None] = {}
    seen: set[Value] = set()
    stack = [g for g in grads if isinstance(g, Value)]
    while stack:
        value = stack.pop()
        if value in seen or value in given:
            continue
        seen.add(value)
        node = value.node
        if node is None or value in live or value not in late and value not in again:
            saved[value] = None
        else:
            stack.extend(node.operand_values())
    return _in_order(graph, saved)


def computed_again(
    given: Sequence[Value], wanted: Sequence[Value], forward: Collection[Node]
) -> set[Value]:
    """Inputs among `given` of which a part of a graph computes again what the forward pass made:
    the plain function kept that. It reads views, and what the backward pass needs, when that runs.
    What the gradient of a branch or a loop computes within is not told apart.
    """
    found: set[Value] = set()
    seen: set[tuple[Value, bool]] = set()
    ends, stack = set(given), [(v, False) for v in wanted]
    while stack:
        value, again = place = stack.pop()
        if place in seen:
            continue
        seen.add(place)
        node = value.node
        if value in ends or node is None:
            if again and node is None:
                found.add(value)
            continue
        seen_live = node.op.views or node.op.name == "stop_gradient"
        made = bool(node.regions) or node in forward and not seen_live
        stack += [(v, again or made) for v in node.operand_values()]
    return found


def _computable(graph: Graph, readable: Collection[Value], live: Collection[Value]) -> set[Value]:
    """Results of cheap nodes, of what is saved or computed again itself."""
    known, seen = set(readable), set(live)
    again: set[Value] = set()
    for node in graph.nodes:
        if node.op.views and node.inputs[0] in seen:
            seen.update(node.outputs)
            again.update(node.outputs)
        elif node.op.kind not in _CHEAP:
            known.update(node.outputs)
        elif all(v in known for v in node.operand_values()):
            known.update(node.outputs)
            again.update(node.outputs)
    return again


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
