"""Sizes in terms of as few symbols as are left.

In: a Graph whose scope has learnt which sizes are equal. Out: the same Graph, where types and
attributes name equal sizes alike. Every parameter of a network brings its own symbols; once products
and updates have shown which agree, the text, the kernels and every later comparison have few.
"""

from __future__ import annotations

from typing import Any

from tracejit.ir.graph import Graph, Value
from tracejit.ir.sizes import Scope, Size


def settle_sizes(graph: Graph, numerics: str = "fast") -> Graph:
    """Replace sizes by what they are known to equal; how symbols are bound stays."""
    if not graph.scope.equal:
        return graph
    for value in graph.inputs:
        _settle_type(value, graph.scope)
    graph.strides = {v: _settled(strides, graph.scope) for v, strides in graph.strides.items()}
    for node in graph.nodes:
        for value in node.outputs:
            _settle_type(value, graph.scope)
        for name, static in node.attributes.items():
            node.attributes[name] = _settled(static, graph.scope)
        if any(type(x) is Size for x in node.inputs):
            node.inputs = _settled(node.inputs, graph.scope)
    return graph


def _settle_type(value: Value, scope: Scope) -> None:
    if any(type(size) is Size for size in value.shape):
        value.type = value.type._replace(shape=_settled(value.shape, scope))


def _settled(static: Any, scope: Scope) -> Any:
    if type(static) is Size:
        return scope.resolve(static)
    if type(static) in (tuple, list):
        return type(static)([_settled(x, scope) for x in static])
    if type(static) is slice:
        parts = (static.start, static.stop, static.step)
        return slice(*(_settled(x, scope) for x in parts))
    return static
