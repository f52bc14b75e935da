"""Reasons why groups did not become one kernel, in words, with the user's lines.

In: a `Fuser` after its run. Out: one text for each value that one group stores and another loads,
and for each two groups that read the same tensor. Called by `lower.py` for
`TRACEJIT_LOGS=fusion` alone; nothing here decides anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from tracejit.jit.ir.graph import Graph, Node, Value, size_names, with_size_names
from tracejit.jit.lowering.fuse import Fuser
from tracejit.jit.lowering.groups import MEMBERS_CAP, Group, count, index_alike
from tracejit.jit.lowering.index import is_one, same_size
from tracejit.jit.lowering.precedence import is_between

MOST = 60  # reasons given for one program
_CALLS = {
    "product": "a product is a call of its own, which reads and writes memory",
    "library": "`{op}` is a kernel of the library, which reads and writes memory",
    "host": "`{op}` has no kernel here and runs by itself, in memory",
}
_LOOPS = {
    "column": "a reduction over leading dimensions has loops of its own",
    "scatter": "writing where an index says needs a whole tensor first, and loops of its own",
}


def reasons(fuser: Fuser, graph: Graph) -> list[str]:
    """Return why groups stay apart: first those that hand values on, then those that share
    reads."""
    names = size_names(graph)
    found = list(dict.fromkeys([*_handed_on(fuser, names), *_shared(fuser, names)]))
    left = len(found) - MOST
    return [*found[:MOST], f"... and {left} more"] if left > 0 else found


def _handed_on(fuser: Fuser, names: Mapping[str, str]) -> Iterator[str]:
    home = {v: g for g in fuser.groups for v in g.stores if g.kind != "part"}
    for value, readers in fuser.readers.items():
        first = home.get(value)
        for second in readers if first is not None else ():
            if second is not first:
                assert first is not None
                why = _why(fuser, value, first, second, names)
                yield f"{_told(value.node)} is stored for {_told(_last(second))}: {why}"


def _shared(fuser: Fuser, names: Mapping[str, str]) -> Iterator[str]:
    for value, readers in fuser.readers.items():
        loops = [group for group in readers if group.kind == "loop"]
        for first, second in zip(loops, loops[1:]):
            why = _why_no_merge(first, second, names)
            if why and not is_one(count(value)):
                yield (f"{_told(_last(first))} and {_told(_last(second))} both read "
                       f"{_named(value)}: {why}")


def _why(
    fuser: Fuser, value: Value, first: Group, second: Group, names: Mapping[str, str]
) -> str:
    """Return why the group that loads a value is not the one that stores it."""
    for group in (first, second):
        if group.kind in _CALLS:
            op = group.node.op.name if group.node is not None else "it"
            return _CALLS[group.kind].format(op=op)
    if value in first.finals:
        return "a reduction to one element takes two steps: one for each chunk, then one over them"
    for group in (first, second):
        if group.kind == "part":
            return "a reduction to one element reads its operand in chunks, in loops of its own"
        if group.kind in _LOOPS:
            return _LOOPS[group.kind]
    if value in fuser.apart:
        return "the loops that read it would compute it again and again"
    return _why_no_merge(first, second, names) or (
        "other kernels read it too, and computing it again costs more than loading it")


def _why_no_merge(first: Group, second: Group, names: Mapping[str, str]) -> str:
    """Return why two groups of loops are not one; "" if only the choice of the fuser says so."""
    if len(first.members) + len(second.members) > MEMBERS_CAP:
        return f"together they have more than {MEMBERS_CAP} ops, and the text would grow long"
    sizes = [_loops(group, names) for group in (first, second)]
    if sizes[0] != sizes[1] and not _alike(first, second):
        return f"their loops differ: {sizes[0]} and {sizes[1]}"
    if is_between(first, second):
        return "another kernel has to run between them"
    if not index_alike(first, second):
        return "they store tensors of different shapes, whose indices differ"
    return ""


def _alike(first: Group, second: Group) -> bool:
    pairs = [(first.numel, second.numel), (first.rows, second.rows)]
    return all((a is None and b is None)
               or (a is not None and b is not None and same_size(a, b)) for a, b in pairs)


def _loops(group: Group, names: Mapping[str, str]) -> str:
    parts = [] if group.rows is None else [f"{with_size_names(group.rows, names)} rows"]
    parts += [] if group.numel is None else [f"{with_size_names(group.numel, names)} elements"]
    return " of ".join(parts)


def _last(group: Group) -> Node | None:
    """Return the node that a group is told by: that of the value it stores first."""
    return next((v.node for v in group.stores if v.node is not None), group.node)


def _named(value: Value) -> str:
    return f"`{value.source}`" if value.node is None and value.source else _told(value.node)


def _told(node: Node | None) -> str:
    """Return an op with its line: `sum` (model.py:12: y = x.sum())."""
    if node is None:
        return "an input"
    where = node.location
    if where is None:
        return f"`{node.op.name}`"
    return f"`{node.op.name}` ({os.path.basename(where.file)}:{where.line}: {where.text.strip()})"
