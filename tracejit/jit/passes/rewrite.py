"""Sweep over a graph that replaces nodes by cheaper ones.

In: a Graph, and rules by the op they apply to. Out: the same Graph, changed in place. Called by the
passes that are sets of rules (`fold`, `simplify`, `open_composites`). Operands are rewritten before
the nodes that read them, and nodes made by a rule are offered to the rules again, so one sweep
suffices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracejit.core.ops.record import Op
from tracejit.jit.ir.graph import Graph, Node, Value
from tracejit.jit.ir.verify import GraphError, same_type

# (graph, node) -> what replaces the node's output(s), or None. Ops that a rule applies are added
# to the graph.
Rule = Callable[[Graph, Node], Any]


def rewrite(graph: Graph, name: str, rules_of: Callable[[Op], Sequence[Rule]]) -> Graph:
    """Apply rules wherever they match; a replacement of another type is not taken.

    New nodes keep the location of the node they replace. Their provenance is "<name>: from %3 mul",
    where %3 names the replaced node before the pass, also when a new node is replaced in turn.
    """
    replaced: dict[Value, Value] = {}
    nodes: list[Node] = []
    pending = graph.nodes[::-1]
    while pending:
        node = pending.pop()
        if replaced:
            node.inputs = tuple(_now(x, replaced) for x in node.inputs)
        rules = rules_of(node.op)
        made = _apply(graph, name, node, rules) if rules else None
        if made is None:
            nodes.append(node)
        else:
            pending += reversed(made[0])
            replaced.update(zip(node.outputs, made[1]))
    graph.nodes = nodes
    graph.outputs = [_now(v, replaced) for v in graph.outputs]
    graph.writes = [(target, _now(v, replaced)) for target, v in graph.writes]
    return graph


def _now(x: Any, replaced: dict[Value, Value]) -> Any:
    while isinstance(x, Value) and x in replaced:
        x = replaced[x]
    return x


def _apply(graph: Graph, name: str, node: Node,
           rules: Sequence[Rule]) -> tuple[list[Node], tuple[Value, ...]] | None:
    """Return the nodes that the first matching rule made, and the replacements of the outputs."""
    old = node.outputs[0].name if node.outputs else ""
    provenance = f"{name}: from %{old} {node.op.name}" if old else node.provenance
    for rule in rules:
        with graph.inserting(provenance, like=node) as made:
            result = rule(graph, node)
        if result is None:
            continue
        values = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        for value in values:
            if not isinstance(value, Value) or value.graph is not graph:
                raise GraphError(f"{provenance}: the replacement {value!r} is no value of the "
                                 "graph")
        if len(values) == len(node.outputs) and all(
                same_type(v.type, old.type) for v, old in zip(values, node.outputs)):
            return made, values
    return None
