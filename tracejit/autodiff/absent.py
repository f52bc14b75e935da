"""A backward graph for gradients that arrive at some of a call's results only.

In: a graph that is linear in its tangents, those that are absent. Out: the graph without them.
Called when a backward finds that nothing arrives at a result: zeros there would not be the same, as
they make NaN where a derivative is infinite.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tracejit.autodiff.partition import dependent
from tracejit.ir.clone import copy_graph
from tracejit.ir.graph import Graph, Node, Value
from tracejit.ops.record import REGISTRY


def without(
    graph: Graph, tangents: Sequence[Value], absent: Collection[Value]
) -> tuple[Graph, list[int | None]]:
    """The graph without the inputs `absent`, which are some of the `tangents`; and for each output
    its new number, None where nothing is left of it.

    A sum loses the terms that are gone. Other nodes that lose some of their gradients, but not all,
    get zeros, as a tape node of several results does.
    """
    copy, values = copy_graph(graph)
    pruning = _Pruning(copy, dependent(copy, [values[t] for t in tangents]))
    pruning.gone.update(values[t] for t in absent)
    pruning.run()
    kept = [v for v in copy.inputs if v not in pruning.gone]
    number = {v: k for k, v in enumerate(kept)}
    copy.symbol_sources = {
        symbol: (kind, number[copy.inputs[k]], d)
        for symbol, (kind, k, d) in copy.symbol_sources.items()
        if copy.inputs[k] in number
    }
    copy.inputs = kept
    left = [pruning.now(v) for v in copy.outputs]
    copy.outputs = [v for v in left if v not in pruning.gone]
    place = iter(range(len(left)))
    return copy, [None if v in pruning.gone else next(place) for v in left]


def missing(graph: Graph, tangents: Sequence[Value], absent: Collection[int]) -> Graph:
    """The graph without some of its tangents, with zeros for the outputs of which nothing is left.
    """
    if not absent:
        return graph
    made, numbers = without(graph, tangents, [tangents[k] for k in absent])
    made.outputs = [zeros_like(made, old) if number is None else made.outputs[number]
                    for old, number in zip(graph.outputs, numbers)]
    return made


def zeros_like(graph: Graph, value: Value) -> Value:
    """Zeros of the type of a value."""
    kind = value.type
    attributes = {"shape": kind.shape, "value": 0, "dtype": kind.dtype, "device": kind.device}
    return graph.append(REGISTRY["full"], (), attributes)


class _Pruning:
    """Goes through a graph's nodes and drops what depends on tangents that are gone."""

    def __init__(self, graph: Graph, late: set[Value]):
        self.graph, self.late = graph, late
        self.gone: set[Value] = set()
        self.moved: dict[Value, Value] = {}  # sums of one term: the term

    def now(self, value: Value) -> Value:
        return self.moved.get(value, value)

    def run(self) -> None:
        nodes, self.graph.nodes = self.graph.nodes, []
        for node in nodes:
            node.inputs = tuple(self.now(x) if isinstance(x, Value) else x for x in node.inputs)
            given = [x for x in node.operand_values() if x in self.late]
            left = [x for x in given if x not in self.gone]
            if len(left) == len(given):
                self.graph.nodes.append(node)
            elif not left:
                self.gone.update(node.outputs)
            elif node.op.name == "add" and left[0].type == node.outputs[0].type:
                self.moved[node.outputs[0]] = left[0]
            else:
                self._with_zeros(node)

    def _with_zeros(self, node: Node) -> None:
        inputs = [zeros_like(self.graph, x) if x in self.gone else x for x in node.inputs]
        node.inputs = tuple(inputs)
        self.graph.nodes.append(node)
