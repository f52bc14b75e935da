"""Constants that differ from call to call, turned into inputs of a segment.

In: the graph of a segment whose call cannot be replayed. Its Python numbers may come from tensors,
by ways that the tracer does not see. Out: the graph, in which the numbers seen to differ are
inputs, and their values. Otherwise the segment would be compiled for each value. Called by
`runtime.session`.

Two graphs count as the same segment if their ops are the same. A mistake costs only an input, since
an input can hold any value. Numbers that never differ stay constants, and kernels use their values.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from tracejit.core.ops.record import REGISTRY
from tracejit.core.ops.types import (
    TensorType,
    bfloat16,
    dtype,
    float16,
    float32,
    float64,
    int32,
    int64,
)
from tracejit.jit.ir.graph import Graph, Node, Value

Place = tuple[int, int]  # (number of the node, number of its operand)

_KEPT = 256  # segments that are remembered for one function
_HALVES = (float16, bfloat16)
_FLOATS = (*_HALVES, float32, float64)


class ChangingConstants:
    """Numbers in one function's segments, and which of them were seen to differ."""

    def __init__(self) -> None:
        # By the ops of a segment: the numbers of its first call, and the places seen to differ.
        self.known: OrderedDict[int, tuple[dict[Place, Any], set[Place]]] = OrderedDict()

    def as_inputs(self, graph: Graph, inputs: Sequence[Any]) -> tuple[Graph, list[Any]]:
        """Turn numbers that once differed from those of the first call into inputs, in place.
        Return the graph and the values of all its inputs."""
        numbers = {(n, k): x for n, node in enumerate(graph.nodes)
                   if node.op.kind == "pointwise" and node.op.scalar is not None
                   for k, x in enumerate(node.inputs) if _may_differ(node, x)}
        if not numbers:
            return graph, list(inputs)
        changed = self._changed(graph, numbers)
        places = [place for place in numbers if place in changed]
        if places:
            _enter(graph, places)
        return graph, [*inputs, *(numbers[place] for place in places)]

    def _changed(self, graph: Graph, numbers: dict[Place, Any]) -> set[Place]:
        key = hash(tuple([node.op.name for node in graph.nodes]))
        before, changed = self.known.setdefault(key, (numbers, set()))
        self.known.move_to_end(key)
        if len(self.known) > _KEPT:
            self.known.popitem(last=False)
        if before is not numbers:
            changed.update(place for place, x in numbers.items()
                           if place in before and not _is_same(x, before[place]))
        return changed


def _is_same(one: Any, other: Any) -> bool:
    return one == other or one != one and other != other


def _may_differ(node: Node, x: Any) -> bool:
    if type(x) is float:
        return _kind(node) in _FLOATS
    return type(x) is int and abs(x) < 1 << 53 and _kind(node) in (*_FLOATS, int32, int64)


def _kind(node: Node) -> dtype | None:
    """Return the dtype in which a node computes with its numbers, or None if that is not clear."""
    found = {x.dtype for x in node.operand_values() if x.dtype.name != "bool"}
    found = found or {node.outputs[0].dtype}
    return found.pop() if len(found) == 1 else None


def _enter(graph: Graph, places: Sequence[Place]) -> None:
    """Replace each number by a new input, converted to the dtype in which the node computes."""
    before: dict[int, list[Node]] = {}
    for n, k in places:
        node = graph.nodes[n]
        kind, number = _kind(node), node.inputs[k]
        assert kind is not None
        # Arithmetic takes the number as float32; a comparison rounds it to half precision.
        if kind in _HALVES and node.outputs[0].dtype in _HALVES:
            kind = float32
        value = graph.input(TensorType(float64 if type(number) is float else int64, ()), "a number")
        value.is_weak = True
        with graph.inserting("a number that changed", node) as made:
            fresh: Value = graph.append(REGISTRY["convert"], (value,), {"dtype": kind})
        before.setdefault(n, []).extend(made)
        node.inputs = (*node.inputs[:k], fresh, *node.inputs[k + 1:])
    graph.nodes[:] = [x for n, node in enumerate(graph.nodes) for x in (*before.get(n, ()), node)]
