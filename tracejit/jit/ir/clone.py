"""Copies of graphs, so that a pass or a caller may change one and keep the other.

In: a Graph. Out: a new Graph over the same scope of symbols, and where each value went. Called by
the pass pipeline, which never changes the graph it is given, and by differentiation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracejit.jit.ir.graph import Graph, Node, Value


def copy_graph(graph: Graph) -> tuple[Graph, dict[Value, Value]]:
    """(copy, values of the original -> values of the copy). Sizes, locations and the scope are
    shared.

    >>> from tracejit.jit.ir.parser import parse_graph
    >>> graph = parse_graph('graph step(in0: float32[2] "x"): return %in0')
    >>> copy, values = copy_graph(graph)
    >>> copy.outputs[0] is values[graph.inputs[0]], str(copy) == str(graph)
    (True, True)
    """
    copy = replace(graph, inputs=[], nodes=[], outputs=[], writes=[], strides={}, _insert=None,
                   symbol_sources=dict(graph.symbol_sources))
    values: dict[Value, Value] = {}
    for value in graph.inputs:
        values[value] = _copied(value, copy, None)
        copy.inputs.append(values[value])
    copy.strides = {values[v]: strides for v, strides in graph.strides.items()}
    for node in graph.nodes:
        copy.nodes.append(_copied_node(node, copy, values))
    copy.outputs = [values[v] for v in graph.outputs]
    copy.writes = [(values[target], values[v]) for target, v in graph.writes]
    return copy, values


def inline(region: Graph, graph: Graph, operands: Sequence[Value]) -> list[Value]:
    """Copy a region's nodes to the insertion point of `graph`; return its outputs for `operands`.

    Nodes keep their own locations; a node without one gets that of the insertion point.
    """
    values: dict[Value, Value] = dict(zip(region.inputs, operands, strict=True))
    for node in region.nodes:
        new = _copied_node(node, graph, values)
        new.location, new.provenance = node.location or graph.location, graph.provenance
        for value in new.outputs:
            value.name = ""  # names are those of the region
        graph.add(new)
    return [values[v] for v in region.outputs]


def _copied(value: Value, graph: Graph, node: Node | None) -> Value:
    new = Value(graph, value.type, node, value.index)
    new.name, new.is_weak, new.contiguous = value.name, value.is_weak, value.contiguous
    new.source = value.source
    return new


def _copied_node(node: Node, graph: Graph, values: dict[Value, Value]) -> Node:
    inputs = tuple(values[x] if isinstance(x, Value) else x for x in node.inputs)
    regions = tuple(copy_graph(region)[0] for region in node.regions)
    new = Node(node.op, inputs, dict(node.attributes), (), node.location, node.detached,
               node.provenance, regions)
    new.outputs = tuple(_copied(v, graph, new) for v in node.outputs)
    values.update(zip(node.outputs, new.outputs))
    return new
