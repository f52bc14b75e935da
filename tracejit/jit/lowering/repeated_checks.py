"""Checks of positions that an earlier group has made already: they cannot fail.

In: groups that may fail, in order. Out: those whose checks all stand in earlier ones. Called by
`memory.py`: the gradient of an embedding checks the positions that the embedding has checked, and
a collective need not wait for it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from tracejit.jit.ir.graph import Node, Value
from tracejit.jit.lowering.groups import Group
from tracejit.jit.lowering.index import resolved, size_key

# op -> the operand where positions begin
_POSITIONS = {"embedding": 1, "index": 1, "index_put": 2, "index_put_add": 2}


def repeated(groups: Iterable[Group]) -> set[Group]:
    """Return the groups that check nothing new."""
    known: set[Hashable] = set()
    found = set()
    for group in sorted(groups, key=lambda one: one.position):
        checks = _checks_of(group)
        if checks is not None and checks <= known:
            found.add(group)
        else:
            known |= checks or set()
    return found


def _checks_of(group: Group) -> set[Hashable] | None:
    """Return what a group checks: positions, the size they are for, and if negative ones wrap.

    None if it checks something else.
    """
    found: set[Hashable] = set()
    nodes = {value.node: None for value in group.members if value.node is not None}
    if group.node is not None:
        nodes[group.node] = None
    for node in nodes:
        if not node.may_fail:
            continue
        if node.op.name not in _POSITIONS:
            return None
        found |= _of_node(node)
    return found


def _of_node(node: Node) -> set[Hashable]:
    whole, begin = node.inputs[0], _POSITIONS[node.op.name]
    dims = node.attributes.get("dims", (0,))
    wrap = bool(node.attributes.get("wrap", False))
    return {
        (id(positions), size_key(resolved(whole.shape[dim])), wrap)
        for dim, positions in zip(dims, node.inputs[begin:])
        if isinstance(positions, Value)
    }
