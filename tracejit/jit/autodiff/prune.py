"""Prune a backward graph: gradients arrive only at some of a call's results.

In: a graph that is linear in its tangents, the absent ones.
Out: the graph without them. Called when no gradient arrives at a result. Zeros instead would not be
the same, as they become NaN where a derivative is infinite.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from tracejit.core.ops.record import REGISTRY
from tracejit.core.ops.types import bool_
from tracejit.jit.autodiff.partition import dependent
from tracejit.jit.ir.clone import copy_graph
from tracejit.jit.ir.graph import Graph, Node, Value


class Pruned(NamedTuple):
    """Pruned graph.

    numbers  for each old output its new number; None where nothing is left of it
    exact    False if zeros stand for a missing gradient where that could be noticed: as an operand
             of a loop, or as an output that only one side of a branch has lost
    """

    graph: Graph
    numbers: list[int | None]
    exact: bool


def prune(graph: Graph, tangents: Sequence[Value], absent: Collection[Value]) -> Pruned:
    """Copy the graph without the inputs `absent`, which are some of the `tangents`.

    Sums lose the terms that are gone; in branches each side is pruned. Other nodes that lose some
    but not all of their gradients get zeros, as a tape node of several results does.
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
    numbers = [None if v in pruning.gone else next(place) for v in left]
    return Pruned(copy, numbers, pruning.exact)


def prune_keep_outputs(graph: Graph, tangents: Sequence[Value], absent: Collection[int]) -> Pruned:
    """Prune the tangents with these numbers. Outputs of which nothing is left become zeros."""
    if not absent:
        return Pruned(graph, [*range(len(graph.outputs))], True)
    left = prune(graph, tangents, [tangents[k] for k in absent])
    made = left.graph
    made.outputs = [zeros_like(made, old) if number is None else made.outputs[number]
                    for old, number in zip(graph.outputs, left.numbers)]
    return left


def zeros_like(graph: Graph, value: Value) -> Value:
    """Return zeros of a value's type."""
    kind = value.type
    attributes = {"shape": kind.shape, "value": 0, "dtype": kind.dtype, "device": kind.device}
    return graph.append(REGISTRY["full"], (), attributes)


class _Pruning:
    """Pass over a graph's nodes that drops what depends only on absent tangents."""

    def __init__(self, graph: Graph, late: set[Value]):
        self.graph, self.late = graph, late
        self.gone: set[Value] = set()
        self.moved: dict[Value, Value] = {}  # a sum with one term left -> the term
        self.exact = True

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
                self._drop(node)
            elif node.op.name == "add" and left[0].type == node.outputs[0].type:
                self.moved[node.outputs[0]] = left[0]
            elif node.op.name == "cond":
                self._within_sides(node)
            else:
                self.exact = self.exact and (not node.regions or self._same_with_zeros(node))
                self._with_zeros(node)

    def _drop(self, node: Node) -> None:
        """Drop a node without gradients. Its bool outputs tell whether a gradient arrives: they
        become False."""
        for value in node.outputs:
            if value.type.dtype is bool_:
                self.moved[value] = zeros_like(self.graph, value)
            else:
                self.gone.add(value)

    def _within_sides(self, node: Node) -> None:
        """Prune each side of a branch."""
        operands = node.inputs[1:]
        absent = self._numbers(operands, self.gone)
        late = self._numbers(operands, self.late)
        gone = [late.index(k) for k in absent]
        sides = [prune_keep_outputs(side, [side.inputs[k] for k in late], gone)
                 for side in node.regions]
        left = [{side.numbers[k] is None for side in sides} for k in range(len(node.outputs))]
        self.exact = self.exact and all(side.exact for side in sides) and all(
            len(found) == 1 for found in left)
        node.regions = tuple([side.graph for side in sides])
        node.inputs = (node.inputs[0], *(x for k, x in enumerate(operands) if k not in absent))
        self.gone.update(v for v, found in zip(node.outputs, left) if found == {True})
        self.graph.nodes.append(node)

    def _same_with_zeros(self, node: Node) -> bool:
        """Return True if a loop gives the same for zeros at its start as for nothing. That holds if
        the body only adds what is computed from them, in each iteration."""
        if node.op.name not in ("for_loop", "unwind_loop"):
            return False
        # Operands match the body's inputs but for a `for_loop`'s index and a stack's count.
        first, skipped = (0, 1) if node.op.name == "for_loop" else (2, 0)
        copy, _ = copy_graph(node.regions[0])
        pairs = list(zip(node.inputs[first:], copy.inputs[skipped:]))
        carried = copy.inputs[skipped:skipped + node.attributes["carried"]]
        pruning = _Pruning(copy, dependent(copy, [v for x, v in pairs if x in self.late]))
        start = {v for x, v in pairs if x in self.gone}
        pruning.gone.update(start)
        pruning.run()
        # A missing gradient may be carried on only to where one is missing at the start, too.
        return (pruning.exact and pruning.gone == start
                and all(pruning.now(end) not in start or begin in start
                        for begin, end in zip(carried, copy.outputs)))

    def _numbers(self, operands: Sequence[object], among: Collection[Value]) -> list[int]:
        return [k for k, x in enumerate(operands) if isinstance(x, Value) and x in among]

    def _with_zeros(self, node: Node) -> None:
        inputs = [zeros_like(self.graph, x) if x in self.gone else x for x in node.inputs]
        node.inputs = tuple(inputs)
        self.graph.nodes.append(node)
