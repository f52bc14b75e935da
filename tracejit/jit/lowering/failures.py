"""Values whose computation may fail: a kernel that reads only a part of one must not hide the
failure.

In: the nodes of a pure graph, the values that are stored. Out: further values to store. Their nodes
fail for some values (a position out of range), and no kernel would compute all their elements.
Called by `lower.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.jit.ir.graph import Node, Value
from tracejit.jit.lowering.fuse import kind_of
from tracejit.jit.lowering.groups import count
from tracejit.jit.lowering.index import is_zero

# Ops that place every element of each operand. A wrong name here hides failures; a missing one
# stores a value more.
REARRANGING = {"reshape", "permute", "unsqueeze", "squeeze", "expand", "flip", "roll", "cat"}
AT_POSITIONS = {"index": 1, "gather": 1, "embedding": 1}  # the operand where positions begin


def overlooked(nodes: Sequence[Node], numerics: str, stored: set[Value]) -> set[Value]:
    """Return the values to store besides, so that every failure is noticed."""
    found: set[Value] = set()
    if not any(node.may_fail for node in nodes):
        return found
    whole, read = set(stored), {v for node in nodes for v in node.operand_values()}
    for node in reversed(nodes):
        if not node.may_fail:
            pass
        elif kind_of(node, numerics) != "element":
            found |= {v for v in node.outputs[:1] if v not in read}
        elif node.outputs[0] not in whole:
            found |= {*node.outputs}
            whole |= {*node.outputs}
        whole |= _read_whole(node, numerics, whole)
    return found


def _read_whole(node: Node, numerics: str, whole: set[Value]) -> set[Value]:
    """Return operands of which the node needs every element, given `whole`, the values needed in
    full."""
    operands, kind = list(node.inputs), kind_of(node, numerics)
    if kind in ("element", "row", "column", "full"):
        if node.outputs[0] not in whole or is_zero(count(node.outputs[0])):
            return set()
        if node.op.kind == "movement" and node.op.name not in REARRANGING:
            operands = operands[AT_POSITIONS.get(node.op.name, len(operands)):]
    return {x for x in operands if isinstance(x, Value)}
