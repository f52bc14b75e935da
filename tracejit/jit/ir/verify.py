"""Is a graph well formed? Run between passes in tests, and on every graph read from text that will
be run.

In: a Graph, and the name of the pass that made it. Out: nothing, or a GraphError that names the
pass, the node and the user's line. Types are inferred again by each op and compared by structure;
no guard is recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tracejit.core.memory.devices import CPU
from tracejit.core.ops.types import TensorType
from tracejit.jit.ir.graph import Graph, Node, Value
from tracejit.jit.ir.sizes import SymInt, same_size, symbols_of


class GraphError(Exception):
    """Error: a graph that is not well formed, or text that is not a graph."""


def verify(graph: Graph, after: str = "") -> None:
    """Check a graph and its regions.

    Raises GraphError for a value used before it is defined or of another graph, a type that
    inference does not confirm, a write to something else than an input of the value's type, a
    symbol nobody can know, or a name used twice.

    >>> from tracejit.jit.ir.parser import parse_graph
    >>> verify(parse_graph('graph step(in0: float32[2]): write %in0 <- %in0 return'))
    """
    scope = graph.scope
    known = scope.snapshot()
    try:
        _Check(graph, after).run()
    finally:
        scope.restore(known)


class _Check:
    def __init__(self, graph: Graph, after: str):
        self.graph, self.after = graph, after
        self.defined: set[Value] = set()
        self.names: set[str] = set()

    def fail(self, message: str, node: Node | None = None) -> GraphError:
        from tracejit.jit.ir.printer import comment_text, node_text

        text = f"after pass {self.after!r}: {message}" if self.after else message
        if node is not None:
            text += f"\n    {node_text(node)}{comment_text(node.provenance, node.location)}"
        return GraphError(f"{text}\n    in graph {self.graph.name!r}")

    def run(self) -> None:
        for value in self.graph.inputs:
            self.define(value, None)
        for node in self.graph.nodes:
            self.operands(node)
            for region in node.regions:
                _Check(region, self.after).run()
            self.inferred(node)
            for k, value in enumerate(node.outputs):
                if value.node is not node or value.index != k:
                    raise self.fail(f"output {k} does not point back at its node", node)
                self.define(value, node)
        self.results()
        self.symbols()

    def define(self, value: Value, node: Node | None) -> None:
        if value in self.defined:
            raise self.fail(f"{value!r} is defined twice", node)
        if value.graph is not self.graph:
            raise self.fail(f"{value!r} belongs to another graph", node)
        if value.name and value.name in self.names:
            raise self.fail(f"the name %{value.name} is given twice", node)
        self.defined.add(value)
        self.names.add(value.name)

    def operands(self, node: Node) -> None:
        for k, value in enumerate(node.inputs):
            if isinstance(value, Value):
                if value not in self.defined:
                    raise self.fail(f"operand {k}, {value!r}, is not defined before this node",
                                    node)
            elif value is not None and not isinstance(value, (int, float, complex)):
                raise self.fail(f"operand {k} is a {type(value).__name__}, expected a value of the "
                                "graph, a number or None", node)
        for name, attribute in node.attributes.items():
            if any(isinstance(x, Value) for x in flat(attribute)):
                raise self.fail(f"attribute {name!r} holds a value; only operands may", node)

    def inferred(self, node: Node) -> None:
        regions = {"regions": node.regions} if node.regions else {}
        try:
            types = node.op.infer(*node.inputs, **node.attributes, **regions)
        except Exception as error:
            raise self.fail(f"inference fails: {error}", node) from error
        types = (types,) if isinstance(types, TensorType) else tuple(types)
        recorded = tuple(v.type for v in node.outputs)
        if len(types) != len(recorded):
            raise self.fail(f"inference gives {len(types)} outputs, the node has "
                            f"{len(recorded)}", node)
        for k, (a, b) in enumerate(zip(types, recorded)):
            if not same_type(a, b):
                raise self.fail(f"output {k} is recorded as {_text(b)}, inferred as {_text(a)}",
                                node)

    def results(self) -> None:
        for value in self.graph.results():
            if value not in self.defined:
                raise self.fail(f"result {value!r} is not defined in the graph")
        free = set(self.graph.inputs)
        for target, value in self.graph.writes:
            if target not in free:
                what = "is written twice" if target.node is None else "is not an input"
                raise self.fail(f"{target!r} is written, but {what}")
            free.discard(target)
            if not same_type(target.type, value.type):
                raise self.fail(f"{target!r} of type {_text(target.type)} is written with "
                                f"{value!r} of type {_text(value.type)}")

    def symbols(self) -> None:
        for size in sizes_of(self.graph):
            for symbol in symbols_of(self.graph.scope.resolve(size)):
                if symbol not in self.graph.scope.hints and symbol not in self.graph.symbol_sources:
                    raise self.fail(f"symbol {symbol!r} has neither an example value nor a source")


def flat(static: Any) -> Iterator[Any]:
    """Yield the leaves of tuples, lists and slices."""
    if isinstance(static, (tuple, list)):
        for item in static:
            yield from flat(item)
    elif isinstance(static, slice):
        yield from (static.start, static.stop, static.step)
    else:
        yield static


def sizes_of(graph: Graph) -> Iterator[SymInt]:
    """Every symbolic size in a graph's types, strides, operands and attributes."""
    def symbolic(statics: Iterable[Any]) -> Iterator[SymInt]:
        return (x for static in statics for x in flat(static) if type(x) is SymInt)

    for value in graph.inputs:
        yield from symbolic(value.shape)
        yield from symbolic(graph.strides.get(value, ()))
    for node in graph.nodes:
        yield from symbolic(node.inputs)
        yield from symbolic(node.attributes.values())
        for value in node.outputs:
            yield from symbolic(value.shape)


def same_type(a: TensorType, b: TensorType) -> bool:
    """Equal dtype, device and shape; sizes by structure, without a guard."""
    return (a.dtype is b.dtype and (a.device or CPU) == (b.device or CPU)
            and same_sizes(a.shape, b.shape))


def same_sizes(a: tuple, b: tuple) -> bool:
    """Structural equality of two shapes; records no guard."""
    return len(a) == len(b) and all(same_size(x, y) for x, y in zip(a, b))


def _text(type: TensorType) -> str:
    from tracejit.jit.ir.printer import type_text

    return type_text(type)
