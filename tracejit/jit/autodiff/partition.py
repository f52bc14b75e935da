"""Cut a joint graph into forward and backward: choose what is saved and what is computed again.

In: a graph of forward and backward nodes, its tangent inputs. Out: the values to save. Called by
`differentiate` for captured calls whose results require grad (C4), and for each loop body.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tracejit.jit.ir.graph import Graph, Node, Value

_CHEAP = ("pointwise", "movement", "creation")


def residuals(
    graph: Graph,
    tangents: Sequence[Value],
    grads: Sequence[Value],
    readable: Collection[Value] | None = None,
    live: Collection[Value] = (),
    forward: Collection[Node] = (),
) -> list[Value]:
    """Find the forward values that the backward part reads: inputs and results of expensive nodes.

    The backward recomputes cheap chains that start at `readable` inputs (None: all) or at `live`
    values; other inputs may have changed. Others write the memory of `live` values: from these the
    backward computes only views and what it makes itself, not what `forward` nodes do.
    """
    late, given = dependent(graph, tangents), set(tangents)
    again = _computable(graph, forward, graph.inputs if readable is None else readable, set(live))
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
    """Find inputs among `given` from which a part of a graph computes again what the forward pass
    made. The plain function kept that result, so a write to such an input would show.

    Views, and what only the backward pass computes, do not count: the plain function reads them
    then, too. Nodes with regions always count.
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
        made = bool(node.regions) or node in forward and not _looks_on(node)
        stack += [(v, again or made) for v in node.operand_values()]
    return found


def _computable(graph: Graph, forward: Collection[Node], readable: Collection[Value],
                live: set[Value]) -> set[Value]:
    """Find the results of cheap nodes whose operands are readable, saved or computed again
    themselves."""
    # `seen`: live values, their views, and what the backward alone computes from these.
    known, seen = set(readable), set(live)
    again: set[Value] = set()
    for node in graph.nodes:
        operands = set(node.operand_values())
        # The results of expensive nodes are saved, so chains may start there.
        if node.op.kind not in _CHEAP or operands <= known:
            known.update(v for v in node.outputs if v not in live)
        elif operands <= known | seen and (node not in forward or _looks_on(node)):
            seen.update(node.outputs)
        else:
            continue
        if node.op.kind in _CHEAP:
            again.update(node.outputs)
    return again


def _looks_on(node: Node) -> bool:
    """Return True if the result is memory of the operand: a view, or what `detach()` gives."""
    return node.op.views or node.op.name == "stop_gradient"


def dependent(graph: Graph, sources: Iterable[Value]) -> set[Value]:
    """Return the `sources` and all values computed from them."""
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
