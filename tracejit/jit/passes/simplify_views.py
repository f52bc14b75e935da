"""Views that cancel: reshapes, permutations and expansions of one another.

In: nodes of movement ops, and sums over what was expanded. Out: the values that replace them. The
rules are part of `jit/passes/simplify.py`: read there before you add one. Sizes are compared by
structure: no rule asks a question that would be guarded.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops import pointwise
from tracejit.core.ops.movement import (
    expand_record,
    permute_record,
    reshape_record,
    squeeze_record,
    unsqueeze_record,
)
from tracejit.core.ops.shapes import is_one, numel
from tracejit.core.ops.slicing import slice_scatter_record
from tracejit.core.ops.types import FLOATING
from tracejit.jit.ir.digest import static_key
from tracejit.jit.ir.graph import Graph, Node, Value
from tracejit.jit.ir.verify import same_sizes
from tracejit.jit.passes.rewrite import Rule

_SAME_ORDER = {reshape_record, squeeze_record, unsqueeze_record}  # elements keep their linear order


def merge_reshapes(graph: Graph, node: Node) -> Any:
    """Use the nearest value of the chain that already has the shape, else one reshape of its
    start."""
    out = node.outputs[0].shape
    x = node.inputs[0]
    while not same_sizes(x.shape, out):
        if x.node is None or x.node.op not in _SAME_ORDER:
            chained = x is not node.inputs[0]
            return graph.append(reshape_record, (x,), {"shape": out}) if chained else None
        x = x.node.inputs[0]
    return x


def merge_permutes(graph: Graph, node: Node) -> Any:
    """Use one permutation for two, and none for the identity."""
    x, dims = node.inputs[0], tuple(node.attributes["dims"])
    if dims == tuple(range(len(dims))):
        return x
    if x.node is None or x.node.op is not permute_record:
        return None
    inner = x.node.attributes["dims"]
    return permute_record(x.node.inputs[0], dims=tuple(inner[d] for d in dims))


def merge_expands(graph: Graph, node: Node) -> Any:
    """Use one expansion for two, and none to the same shape."""
    x = node.inputs[0]
    if same_sizes(x.shape, node.outputs[0].shape):
        return x
    source = source_of_expand(x)
    return None if source is None else expand_record(source, shape=node.attributes["shape"])


def source_of_expand(x: Value) -> Value | None:
    """Return the operand if `x` is an expansion."""
    return x.node.inputs[0] if x.node is not None and x.node.op is expand_record else None


def drop_whole_slice(graph: Graph, node: Node) -> Any:
    """Drop a slice as large as its operand: steps are positive, so it takes everything in order."""
    x = node.inputs[0]
    return x if same_sizes(x.shape, node.outputs[0].shape) else None


def slice_of_scatter(graph: Graph, node: Node) -> Any:
    """Read back what was put into the same place."""
    whole = node.inputs[0]
    if whole.node is None or whole.node.op is not slice_scatter_record:
        return None
    return whole.node.inputs[1] if _same_place(node, whole.node) else None


def scatter_over_scatter(graph: Graph, node: Node) -> Any:
    """Put a part once into the place that it takes: what was put there before is gone."""
    before = node.inputs[0].node
    if before is None or before.op is not slice_scatter_record or not _same_place(node, before):
        return None
    return slice_scatter_record(before.inputs[0], node.inputs[1], **node.attributes)


def _same_place(one: Node, other: Node) -> bool:
    return all(static_key(x) == static_key(other.attributes[name])
               for name, x in one.attributes.items())


def sum_of_expand(graph: Graph, node: Node) -> Any:
    """Equal terms are multiplied, not added: rounds differently."""
    x, dims = node.inputs[0], tuple(node.attributes["dims"])
    source = source_of_expand(x)
    if source is None or x.dtype.category != FLOATING or node.outputs[0].dtype is not x.dtype:
        return None
    lead = len(x.shape) - len(source.shape)
    repeated = [d for d in dims
                if d < lead or is_one(source.shape[d - lead]) and not is_one(x.shape[d])]
    count = numel(x.shape[d] for d in repeated)
    if not repeated or type(count) is not int or count == 0:
        return None  # no terms at all sum to 0, while infinity times 0 is NaN
    rest = tuple(d - lead for d in dims if d not in repeated)
    once = graph.append(node.op, (source,), {"dims": rest, "keepdim": True}) if rest else source
    total: Any = pointwise.mul(once, count)
    out = node.outputs[0].shape
    if same_sizes(total.shape, out):
        return total
    # Dimensions that are repeated but not summed are repeated still.
    return total.expand(*(1 if d in dims else n for d, n in enumerate(x.shape))).reshape(out)


def drop_shapes(graph: Graph, node: Node) -> Any:
    """Let a bucket take gradients as they lie: it puts their elements in a row anyway."""
    found = []
    for x in node.inputs:
        while x.node is not None and x.node.op in _SAME_ORDER:
            x = x.node.inputs[0]
        found.append(x)
    if all(a is b for a, b in zip(found, node.inputs)):
        return None
    return graph.append(node.op, found, node.attributes)


VIEW_RULES: list[tuple[str, Rule]] = [
    ("reshape", merge_reshapes),
    ("squeeze", merge_reshapes),
    ("unsqueeze", merge_reshapes),
    ("permute", merge_permutes),
    ("expand", merge_expands),
    ("slice", drop_whole_slice),
    ("slice", slice_of_scatter),
    ("slice_scatter", scatter_over_scatter),
    ("bucket", drop_shapes),
]
FAST_VIEW_RULES: list[tuple[str, Rule]] = [("sum", sum_of_expand)]
