"""Small branches are both computed, and a choice is made between the results.

In: a Graph. Out: the same Graph, where a `cond` whose regions are a few cheap elementwise ops has
become those ops and a `where` for each output, which fuse with what is around them; and where a
`cond` whose decision is known has become the region it takes. Called by the pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.ops import pointwise
from tracejit.core.ops.control import cond_record
from tracejit.core.ops.record import Op
from tracejit.jit.ir.clone import inline
from tracejit.jit.ir.graph import Graph, Node
from tracejit.jit.passes.fold import constant
from tracejit.jit.passes.rewrite import Rule, rewrite

LIMIT = 24  # nodes of both regions together
_KINDS = ("pointwise", "movement", "creation")
# The processor traps where it divides integers by zero, as the branch not taken might.
_TRAPPING = ("floor_divide_integer", "remainder_integer")


def flatten_cond(graph: Graph, numerics: str = "fast") -> Graph:
    """Replace small and decided branches."""
    return rewrite(graph, "branches", _rules_of)


def _rules_of(op: Op) -> Sequence[Rule]:
    return (taken_region, both_regions) if op is cond_record else ()


def taken_region(graph: Graph, node: Node) -> Any:
    """The region that is taken, where that is known."""
    decision = constant(node.inputs[0])
    if decision is None:
        return None
    return inline(node.regions[0 if decision else 1], graph, node.inputs[1:])


def both_regions(graph: Graph, node: Node) -> Any:
    """Both regions, and for each output `where(predicate, then, else)`."""
    if sum(len(region.nodes) for region in node.regions) > LIMIT:
        return None
    if not all(_is_cheap(inner) for region in node.regions for inner in region.nodes):
        return None
    then, otherwise = (inline(region, graph, node.inputs[1:]) for region in node.regions)
    return [a if a is b else pointwise.where(node.inputs[0], a, b)
            for a, b in zip(then, otherwise)]


def _is_cheap(node: Node) -> bool:
    op = node.op
    in_kernels = op.element is not None or op.scalar is not None
    return (op.kind in _KINDS and in_kernels and not node.may_fail and not node.regions
            and len(node.outputs) == 1 and op.name not in _TRAPPING)
