"""Evaluation of a graph of which only some inputs are known. They suffice if known flags exclude
what reads the others.

In: the graph of a backward, the tensors that are left of a call whose history is freed.
Out: its outputs, as eager ops on the tape. Of a branch only the taken side runs, of a loop without
iterations nothing. Used by `jit/runtime/later_backward.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tracejit.jit.ir.graph import Graph, Node, Value
from tracejit.jit.ir.interpret import at_size, outputs_of, run_tensors


class UnknownInput(LookupError):
    """Error for an unknown input that an output needs."""


class PartialEvaluator:
    """Values of a graph, each computed on demand. `given`: functions that return the known
    inputs."""

    def __init__(self, graph: Graph, given: Mapping[Value, Callable[[], Any]],
                 sizes: Mapping[str, int]):
        self.graph, self.given, self.sizes = graph, given, sizes
        self.made: dict[Value, Any] = {}
        self.sides: dict[Node, PartialEvaluator] = {}

    def outputs(self) -> list[Any]:
        """Compute the graph's outputs. Raises UnknownInput if one needs an input that is not
        given."""
        return [self.value(v) for v in self.graph.outputs]

    def value(self, wanted: Value) -> Any:
        stack = [wanted]
        while stack:
            value = stack[-1]
            missing = [] if value in self.made else self._missing(value)
            stack += missing
            if not missing:
                stack.pop()
                if value not in self.made:
                    self._make(value)
        return self.made[wanted]

    def _missing(self, value: Value) -> list[Value]:
        node = value.node
        return [] if node is None else [x for x in self._needed(node, value) if x not in self.made]

    def _needed(self, node: Node, value: Value) -> list[Any]:
        """List the values to compute next for one of a node's outputs."""
        if node.op.name == "cond":
            return [node.inputs[0]]
        if node.op.name == "unwind_loop" and node.inputs[0] not in self.made:
            return [node.inputs[0]]
        start = self._start(node, value)
        return [*node.operand_values()] if start is None else [start]

    def _start(self, node: Node, value: Value) -> Value | None:
        """Return the operand that a loop without iterations gives as this output. None for other
        nodes."""
        if node.op.name == "for_loop":
            trip_count, first = at_size(node.attributes["trip_count"], self.sizes), 0
        elif node.op.name == "unwind_loop":
            trip_count, first = int(self.made[node.inputs[0]]), 2
        else:
            return None
        number = _number(node, value)
        goes = trip_count == 0 and number < node.attributes["carried"]
        return node.inputs[first + number] if goes else None

    def _make(self, value: Value) -> None:
        node, made = value.node, self.made
        if node is None:
            if value not in self.given:
                raise UnknownInput(value)
            made[value] = self.given[value]()
        elif node.op.name == "cond":
            side = self._side(node)
            made[value] = side.value(side.graph.outputs[_number(node, value)])
        elif (start := self._start(node, value)) is not None:
            made[value] = made[start]
        else:
            made.update(zip(node.outputs, outputs_of(node, made, self.sizes, run_tensors)))

    def _side(self, node: Node) -> PartialEvaluator:
        """Return the evaluator of the side that a branch takes."""
        if node not in self.sides:
            side = node.regions[0 if bool(self.made[node.inputs[0]]) else 1]
            given = {v: partial(self.value, x) for v, x in zip(side.inputs, node.inputs[1:])}
            self.sides[node] = PartialEvaluator(side, given, self.sizes)
        return self.sides[node]


def _number(node: Node, value: Value) -> int:
    """Return the index of a value among a node's outputs."""
    return next(k for k, v in enumerate(node.outputs) if v is value)
