"""Copy the part of a graph between given inputs and outputs.

In: a Graph, some of its values as inputs, some as outputs. Out: a new Graph over the same scope.
Called by the tracer (what a segment needs), by autodiff (the backward part) and by the jit (the
joint graph for higher orders).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from tracejit.jit.ir.graph import Graph, Node, Value


def extract(graph: Graph, name: str, inputs: Sequence[Value], outputs: Sequence[Value],
            writes: Sequence[tuple[Value, Value]] = (), copied: Container[Value] = (),
            lying: Mapping[Value, Value] | None = None, effects: bool = False) -> Graph:
    """Make a graph that computes `outputs` (and writes) from `inputs`. It shares sizes with
    `graph`.

    copied  inputs of `graph` that the new one is given as copies: contiguous, whatever they were
    lying   values that the new one is given in the memory of inputs of `graph`
    effects  keep all nodes that act on more than their results
    """
    places = [(lying or {}).get(value, value) for value in inputs]
    part = Graph(name, scope=graph.scope)
    now: dict[Value, Value] = {}
    for value, place in zip(inputs, places):
        strides = () if value in copied else graph.strides.get(place, ())
        contiguous = place.contiguous or value in copied
        fresh = part.input(value.type, value.source, contiguous, strides)
        fresh.is_weak = value.is_weak
        now[value] = fresh
    failing = _failing(graph, set(inputs)) if all(v.node is None for v in inputs) else []
    if effects:
        failing += [node for node in graph.nodes if node.effect]
    needed = _needed(inputs, [*outputs, *(v for _, v in writes)], failing)
    for node in graph.nodes:
        if node in needed:
            _copy_node(part, node, now)
    part.outputs = [now[v] for v in outputs]
    part.writes = [(now[i], now[v]) for i, v in writes]
    number = {value: k for k, value in enumerate(graph.inputs)}
    moved = {number[v]: k for k, v in enumerate(places) if v in number}
    part.symbol_sources = {s: (kind, moved[k], d)
                           for s, (kind, k, d) in graph.symbol_sources.items()
                           if k in moved and (kind != "stride" or inputs[moved[k]] not in copied)}
    return part


def _failing(graph: Graph, known: set[Value]) -> list[Node]:
    """Return the nodes that may fail, as far as they depend on nothing but `known` values.

    Such a node has run before a part that starts at intermediate values (a backward part), so it is
    not repeated there.
    """
    found = []
    for node in graph.nodes:
        if all(v in known for v in node.operand_values()):
            known.update(node.outputs)
            if node.may_fail:
                found.append(node)
    return found


def _needed(inputs: Sequence[Value], outputs: Sequence[Value], failing: Sequence[Node]
            ) -> set[Node]:
    given = set(inputs)
    needed: set[Node] = set(failing)
    stack: list[Any] = [*outputs, *(v for node in failing for v in node.operand_values())]
    while stack:
        value = stack.pop()
        if value.node is None or value in given:
            continue
        if value.node not in needed:
            needed.add(value.node)
            stack.extend(v for v in value.node.operand_values() if v not in given)
    return needed


def _copy_node(part: Graph, node: Node, now: dict[Value, Value]) -> None:
    inputs = tuple(now[x] if isinstance(x, Value) else x for x in node.inputs)
    copy = Node(node.op, inputs, dict(node.attributes), location=node.location,
                detached=node.detached, provenance=node.provenance, regions=node.regions)
    copy.outputs = tuple(Value(part, v.type, copy, v.index) for v in node.outputs)
    for old, new in zip(node.outputs, copy.outputs):
        new.is_weak = old.is_weak
        now.setdefault(old, new)
    part.nodes.append(copy)
