"""Compute both sides of small branches, and choose between the results.

In: a Graph. Out: the same Graph. A `cond` whose regions are a few cheap elementwise ops becomes
those ops and a `where` for each output, which fuse with their neighbours. A `cond` whose decision
is known becomes the region it takes. Called by the pipeline.

>>> from tracejit.jit.ir.parser import parse_graph
>>> print(flatten_cond(parse_graph('''graph g(in0: bool[] "c", in1: float32[2] "x"):
...   %0: float32[2] = cond(%in0, %in1) {
...     graph g_then(in0: float32[2]):
...       %0: float32[2] = neg(%in0)
...       return %0
...     graph g_else(in0: float32[2]):
...       %0: float32[2] = exp(%in0)
...       return %0
...   }
...   return %0''')))
graph g(in0: bool[] "c", in1: float32[2] "x"):
  %0: float32[2] = neg(%in1)  # [branches: from %0 cond]
  %1: float32[2] = exp(%in1)  # [branches: from %0 cond]
  %2: float32[2] = where(%in0, %0, %1)  # [branches: from %0 cond]
  return %2
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
    """Inline the region that is taken, where the decision is known."""
    decision = constant(node.inputs[0])
    if decision is None:
        return None
    return inline(node.regions[0 if decision else 1], graph, node.inputs[1:])


def both_regions(graph: Graph, node: Node) -> Any:
    """Inline both regions, with `where(predicate, then, else)` for each output."""
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
