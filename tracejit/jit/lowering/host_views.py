"""Host calls that see views: bit for bit what eager mode computes, strides included.

In: a graph's nodes. Out: the same nodes. A host call of a view of a stored value takes the stored
value and makes the view itself: NumPy's products and sums choose their order by strides. Called by
`lower.py` for "eager" numerics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tracejit.core.ops.record import REGISTRY
from tracejit.jit.ir.graph import Node, Value
from tracejit.jit.ir.interpret import evaluate_op


@dataclass(eq=False)
class ViewingOp:
    """Op whose operands go through views first; only host calls know it."""

    name: str
    eager: Callable[..., Any]
    kind: str = "extern"
    extern: str | None = None
    element: None = None
    library: bool = False
    by_kernel: bool = False  # `eager` looks for a kernel itself
    scalar: None = None
    reduce: None = None
    scatter: None = None


def with_views(nodes: list[Node], is_host: Callable[[Node], bool]) -> list[Node]:
    """Make host calls take the values that their operands are views of."""
    return [_viewing(node) if is_host(node) and not node.regions else node for node in nodes]


def _viewing(node: Node) -> Node:
    further: list[Any] = []  # where views look at a place that a value holds
    chains = [_chain(x, further, len(node.inputs)) if isinstance(x, Value) else (x, ())
              for x in node.inputs]
    if not any(views for _, views in chains):
        return node

    def eager(xp: Any, *arrays: Any, views: tuple, attributes: dict) -> Any:
        seen = [_apply(xp, x, steps, arrays) for x, steps in zip(arrays, views)]
        found = evaluate_op(node.op, xp, tuple(seen), attributes)
        return found[0] if len(node.outputs) == 1 else tuple(found)

    attributes = {"views": tuple(steps for _, steps in chains), "attributes": dict(node.attributes)}
    viewing: Any = ViewingOp(node.op.name, eager)
    inputs = (*[x for x, _ in chains], *further)
    return Node(viewing, inputs, attributes, node.outputs, node.location)


def _chain(value: Value, further: list[Any], count: int) -> tuple[Value, tuple]:
    """Return the value behind the views, and the views in order. Their further operands are added
    to `further`; the call lists these after its `count` own operands."""
    steps: list[tuple[str, tuple[int, ...], dict]] = []
    while (node := value.node) is not None and getattr(node.op, "views", False):
        value, *more = node.inputs
        at = count + len(further)
        further += more
        steps.append((node.op.name, tuple(range(at, at + len(more))), dict(node.attributes)))
    return value, tuple(reversed(steps))


def _apply(xp: Any, array: Any, steps: tuple, arrays: tuple) -> Any:
    for name, further, attributes in steps:
        more = [arrays[k] for k in further]
        array = REGISTRY[name].eager(xp, array, *more, **attributes)  # type: ignore[misc]
    return array
