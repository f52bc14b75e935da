"""Move work of a `for_loop` that depends on no carried value before the loop, for all iterations
at once.

In: a Graph. Out: the same Graph, in which such loops read rows of what is computed before them.
Called by the pipeline. A loop's gradient computes again from the values of each iteration what its
rules need. Exponentials and divisions of all iterations are then vectors, while in the loop each
waits for the one before. Only numbers move, and what they are made of: a row of them for each
iteration is little memory.
"""

from __future__ import annotations

import re
from typing import Any

from tracejit.jit.ir.graph import Graph, Node, Value
from tracejit.jit.ir.verify import same_sizes

_COSTLY = re.compile(r"/|[a-z]\w*\(")  # a division, or a function
_ROWS_READ = 2  # costly operations, at least, for each row that the loop then reads
MOST_NODES = 2000  # of a body: text of the loop and of what is before it


def before_loops(graph: Graph, numerics: str = "fast") -> Graph:
    """Move what can be computed for all iterations at once before its loop."""
    for node in [n for n in graph.nodes if n.op.name == "for_loop"]:
        moved = _moved(node)
        if moved:
            _move(graph, node, moved)
    return graph


def _moved(node: Node) -> list[Node]:
    """Return the nodes of the body to move, in order."""
    region, scanned = node.regions[0], _scanned(node)
    rows = {
        x
        for x, outer in scanned.items()
        if not x.shape and same_sizes(outer.shape, (node.attributes["trip_count"],))
    }
    captured = {
        x for x in region.inputs[1 + node.attributes["carried"] + len(scanned) :] if not x.shape
    }
    if not rows or len(region.nodes) > MOST_NODES:
        return []
    free = set(rows)
    wanted: set[Node] = set()
    able: list[Node] = []
    for inner in region.nodes:
        operands = list(inner.operand_values())
        scalar = inner.op.scalar if inner.op.kind == "pointwise" else None
        if (
            scalar is None
            or inner.stays
            or inner.outputs[0].shape
            or not all(x in free or x in captured for x in operands)
            or free.isdisjoint(operands)
        ):
            continue
        if any(x.dtype is not inner.outputs[0].dtype for x in operands):
            continue  # types of operands would decide otherwise for rows than for numbers
        able.append(inner)
        free.add(inner.outputs[0])
        if _COSTLY.search(scalar.replace("{dtype}(", "")):
            wanted.add(inner)
    costly = len(wanted)
    for inner in reversed(able):
        if inner in wanted:
            wanted |= {x.node for x in inner.operand_values() if x.node is not None}
    moved = [inner for inner in able if inner in wanted]
    left = set(region.outputs)
    for inner in region.nodes:
        if inner not in wanted:
            left.update(inner.operand_values())
    read = sum(inner.outputs[0] in left for inner in moved)
    return moved if costly >= _ROWS_READ and read <= _ROWS_READ * costly else []


def _scanned(node: Node) -> dict[Value, Value]:
    """Return the values of the body that are rows, with the values they are rows of."""
    carried, count = node.attributes["carried"], node.attributes["scanned"]
    inside = node.regions[0].inputs[1 + carried : 1 + carried + count]
    return dict(zip(inside, node.inputs[carried : carried + count], strict=True))


def _move(graph: Graph, node: Node, moved: list[Node]) -> None:
    region, outer = node.regions[0], dict[Value, Any](_scanned(node))
    beside = node.attributes["carried"] + node.attributes["scanned"]
    outer |= zip(region.inputs[1 + beside :], node.inputs[beside:], strict=True)
    with graph.inserting("before_loops: from a loop's body", like=node) as made:
        for inner in moved:
            graph.location, graph.detached = inner.location, inner.detached
            operands = [outer[x] if isinstance(x, Value) else x for x in inner.inputs]
            outer[inner.outputs[0]] = graph.append(inner.op, operands, inner.attributes)
    at = graph.nodes.index(node)
    graph.nodes[at:at] = made
    region.nodes = [inner for inner in region.nodes if inner not in set(moved)]
    read = {x for inner in region.nodes for x in inner.operand_values()} | set(region.outputs)
    rows = [inner.outputs[0] for inner in moved if inner.outputs[0] in read]
    inputs: dict[Value, Any] = {}
    for x in rows:
        inputs[x] = row = Value(region, x.type)
        row.source, row.contiguous = "row", True
    region.inputs[1 + beside : 1 + beside] = inputs.values()
    region.substitute(inputs)
    node.inputs = (*node.inputs[:beside], *(outer[x] for x in rows), *node.inputs[beside:])
    node.attributes = {**node.attributes, "scanned": node.attributes["scanned"] + len(rows)}
