"""Writes that change a part of an input: only that part is stored.

In: a graph's writes (target, new content), where the content may be the target with another part in
it, as after `u[1:-1] += v`. Out: writes of the part alone. Called by `lower.py`. Without this, each
iteration of a loop would copy all of a tensor that it changes in part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tracejit.core.ops.slicing import slice_record, slice_scatter_record
from tracejit.jit.ir.digest import static_key
from tracejit.jit.ir.graph import Graph, Node, Value


class Part:
    """Elements of an input: in each dimension every `step`-th from `start` on."""

    contiguous = False

    def __init__(self, whole: Value, starts: Sequence[Any], steps: Sequence[int],
                 shape: Sequence[Any]):  # fmt: skip
        self.whole, self.starts, self.steps = whole, list(starts), list(steps)
        self.shape, self.ndim = tuple(shape), len(shape)

    def within(self, index: Sequence[Any]) -> list[Any]:
        """Return where in the whole an element of the part lies."""
        return [i * step + start for i, step, start in zip(index, self.steps, self.starts)]

    def sliced(self, part: Value, dim: int, start: Any, stop: Any, step: int) -> Part:
        """Return the slice of this part that has the shape of `part`."""
        starts, steps = list(self.starts), list(self.steps)
        starts[dim] = starts[dim] + start * steps[dim]
        steps[dim] = steps[dim] * step
        return Part(self.whole, starts, steps, part.shape)


def whole_of(target: Any) -> Value:
    """Return the input that a write changes."""
    return target.whole if isinstance(target, Part) else target


def partial_writes(graph: Graph) -> list[tuple[Any, Value]]:
    """Return the graph's writes; those of a part, that nothing else reads as a whole, as parts."""
    read = Counter([*graph.outputs, *(v for _, v in graph.writes),
                    *(x for node in graph.nodes for x in node.operand_values())])
    return [
        _partial(target, v) if read[v] == 1 else (target, v) for target, v in graph.writes
    ]


def _partial(target: Value, v: Value) -> tuple[Any, Value]:
    whole, part = target, None
    while v.node is not None and v.node.op is slice_scatter_record and v.node.inputs[0] is whole:
        node, v = v.node, v.node.inputs[1]
        before = part or Part(target, [0] * target.ndim, [1] * target.ndim, target.shape)
        part = before.sliced(v, **node.attributes)
        base = v.node.inputs[0] if v.node is not None and v.node.inputs else None
        if not isinstance(base, Value) or not _is_same_slice(base, whole, node):
            break
        whole = base
    return (part or target, v)


def _is_same_slice(value: Value, whole: Value, scatter: Node) -> bool:
    """Return True if `value` is the slice of `whole` that the node replaces."""
    node = value.node
    if node is None or node.op is not slice_record or node.inputs[0] is not whole:
        return False
    return all(static_key(node.attributes[name]) == static_key(given)
               for name, given in scatter.attributes.items())
