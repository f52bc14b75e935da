"""Write sizes in terms of as few symbols as are left.

In: a Graph whose scope has learnt which sizes are equal. Out: the same Graph, where types and
attributes name equal sizes alike. Every parameter of a network brings its own symbols. Once
products and updates have shown which agree, the text, the kernels and every later comparison have
few.

>>> from tracejit.jit.ir.parser import parse_graph
>>> print(settle_sizes(parse_graph('''
...   graph g(in0: float32[s0] "x", in1: float32[s1] "y") where s0=2 in0.size[0], s1=2 in1.size[0]:
...   %0: float32[s0] = add(%in0, %in1)
...   return %0
...   equal s1 = s0''')))
graph g(in0: float32[s0] "x", in1: float32[s0] "y") where s0=2 in0.size[0], s1=2 in1.size[0]:
  %0: float32[s0] = add(%in0, %in1)
  return %0
  equal s1 = s0
"""

from __future__ import annotations

from typing import Any

from tracejit.jit.ir.graph import Graph, Value
from tracejit.jit.ir.sizes import ShapeEnv, SymInt, symbols_of


def settle_sizes(graph: Graph, numerics: str = "fast") -> Graph:
    """Replace sizes by what they are known to equal; how symbols are bound stays.

    Sizes in regions are settled with those of the graph around them, whose symbols they share. The
    scope may know more than this graph: a symbol of another segment's input is not used here.
    """
    if graph.scope.equal:
        _Settling(graph.scope, set(graph.symbol_sources)).graph(graph)
    return graph


class _Settling:
    def __init__(self, scope: ShapeEnv, bound: set[str]):
        self.scope, self.bound = scope, bound

    def graph(self, graph: Graph) -> None:
        for value in graph.inputs:
            self.type(value)
        graph.strides = {v: self.static(strides) for v, strides in graph.strides.items()}
        for node in graph.nodes:
            for value in node.outputs:
                self.type(value)
            for name, static in node.attributes.items():
                node.attributes[name] = self.static(static)
            if any(type(x) is SymInt for x in node.inputs):
                node.inputs = self.static(node.inputs)
            for region in node.regions:
                self.graph(region)

    def type(self, value: Value) -> None:
        if any(type(size) is SymInt for size in value.shape):
            value.type = value.type._replace(shape=self.static(value.shape))

    def static(self, static: Any) -> Any:
        if type(static) is SymInt:
            return self.size(static)
        if type(static) in (tuple, list):
            return type(static)([self.static(x) for x in static])
        if type(static) is slice:
            return slice(*map(self.static, (static.start, static.stop, static.step)))
        return static

    def size(self, size: SymInt) -> Any:
        known = self.scope.resolve(size)
        unbound = known is not size and symbols_of(known) - self.bound
        return size if unbound and symbols_of(size) <= self.bound else known
