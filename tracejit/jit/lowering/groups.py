"""Groups: sets of nodes that become one kernel, and the order between them.

In: values placed by `fuse.py`, from the last node to the first. Out: groups with their stores, and
answers about which depends on which. A group of kind

    loop     elementwise, perhaps with reductions over rows; `rows` is then how many there are
    column   reductions over leading dimensions: loops over (batch, reduced, columns)
    scatter  a copy of one tensor, then elements of another put or added where an index says
    part     the first phase of full reductions: each chunk of the input gives one element
    product  one library call
    library  one kernel of `library.py`
    host     one call of eager's own function
    barrier  nothing: `memory.py` orders other groups by it

Before you add a rule here: a test and its change must agree, `fits` with `admit`, `_same_loops`
with `merge`; `take_rows` is both. A group of kind loop has `numel` (flat loops), `rows` (one
element a row), or both. With `rows`, leading dimensions of every stored value must make up that
many elements: `loops.py` asserts it. Equal counts are not equal loops: see the tests of a square in
`tests/lowering/test_fuse.py`. Compare sizes by `same_size`, which records no guard; `lower.py`
asserts that there are none.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from tracejit.jit.ir.graph import Node, Value
from tracejit.jit.ir.sizes import SizeLike
from tracejit.jit.lowering.index import is_one, product, resolved, same_size, size_key
from tracejit.jit.lowering.precedence import Ordered, contract, is_between

MEMBERS_CAP = 160  # longer chains are cut: texts stay readable, compile time linear
REDUCTIONS_CAP = 16  # reductions that share loops, at most: layers far apart need not


class Group(Ordered):
    """Future kernel or call."""

    def __init__(self, kind: str, position: int, node: Node | None = None, rank: int = 0):
        super().__init__(rank)
        self.kind, self.position, self.node = kind, position, node
        self.members: set[Value] = set()  # computed here
        self.stores: list[Value] = []  # those of them that others read; for a part: reductions
        self.finals: set[Value] = set()  # full reductions whose second phase is here
        self.numel: SizeLike | None = None
        self.rows: SizeLike | None = None
        self.domains: list[SizeLike] = []  # numbers of elements its loops run over
        self.column_key: Hashable = None
        self.operands: list[Value] = []  # of a call
        self.into: Group | None = None  # where this group went when it was merged

    def __repr__(self) -> str:
        return f"<{self.kind} group {self.position}: {len(self.members)} members>"


class Extents(NamedTuple):
    """Shape without its dimensions of 1, and numbers of elements of its leading dimensions."""

    dense: tuple[SizeLike, ...]
    leading: tuple[SizeLike, ...]  # 1, dense[0], dense[0] * dense[1] ...


def extents(value: Any) -> Extents:
    """Return the extents of a value or a partial."""
    learnt = value.graph.scope.learnt if hasattr(value, "graph") else 0
    known = getattr(value, "extents", None)
    # Equalities learnt meanwhile may make more dimensions 1.
    if known is not None and known[0] == learnt:
        return known[1]
    dense = tuple(s for s in map(resolved, value.shape) if not is_one(s))
    leading: list[SizeLike] = [1]
    for size in dense:
        leading.append(leading[-1] * size)
    found = Extents(dense, tuple(leading))
    value.extents = learnt, found
    return found


def dense_shape(value: Any) -> tuple[SizeLike, ...]:
    """Return the shape without dimensions known to be 1."""
    return extents(value).dense


def count(value: Any) -> SizeLike:
    """Return the number of elements."""
    return extents(value).leading[-1]


def prefix_length(value: Any, rows: SizeLike) -> int | None:
    """Return how many leading dimensions (not of 1) make up `rows` elements; None where none do."""
    for k, total in enumerate(extents(value).leading):
        if same_size(total, rows):
            return k
    return None


def fits(value: Any, group: Group) -> bool:
    """Return True if the group's own loops can store elements of `value`."""
    if group.kind != "loop" or len(group.members) >= MEMBERS_CAP:
        return False
    numel = count(value)
    if group.rows is None:
        return group.numel is not None and (
            same_size(numel, group.numel) or _one_each_row(value, group)
        )
    if same_size(numel, group.rows):
        return True
    # Any shape has a prefix of 1 element, so one row would fit everything.
    if same_size(group.rows, 1) or group.numel is not None and not same_size(numel, group.numel):
        return False
    return prefix_length(value, group.rows) is not None


def _one_each_row(value: Any, group: Group) -> bool:
    """Return True if `value` has one element for each row of all that the group stores."""
    numel = count(value)
    return (
        not is_one(numel)
        and bool(group.stores)
        and all(prefix_length(v, numel) is not None for v in group.stores)
    )


def admit(value: Any, group: Group) -> None:
    """Store `value` in a group it fits."""
    numel = count(value)
    if group.rows is None and group.numel is not None and not same_size(numel, group.numel):
        group.rows = numel
    if group.numel is None and not (group.rows is not None and same_size(numel, group.rows)):
        group.numel = numel
    group.domains.append(numel)


def is_full(group: Group) -> bool:
    """Return True if the group's loops take no more reductions."""
    return len(group.stores) >= REDUCTIONS_CAP or len(group.members) >= MEMBERS_CAP


def take_rows(group: Group, rows: SizeLike, inner: SizeLike, prefix: bool) -> bool:
    """Make the group loop over `rows`, for a reduction of `inner` elements each. Return False, and
    change nothing, if it cannot."""
    if group.kind != "loop" or len(group.members) >= MEMBERS_CAP:
        return False
    if group.rows is not None:
        return same_size(group.rows, rows)
    assert group.numel is not None
    if same_size(group.numel, rows):
        group.rows, group.numel = rows, None
        return True
    if not prefix or same_size(rows, 1) or not same_size(group.numel, rows * inner):
        return False
    if any(prefix_length(v, rows) is None for v in group.stores):
        return False
    group.rows = rows
    return True


def can_merge(a: Group, b: Group) -> bool:
    """Return True if two groups may become one: same loops, and nothing else between them."""
    if a.kind != "loop" or b.kind != "loop" or len(a.members) + len(b.members) > MEMBERS_CAP:
        return False
    return _same_loops(a, b) and not is_between(a, b)


def _same_loops(a: Group, b: Group) -> bool:
    if a.rows is not None and b.rows is not None:
        same_inner = a.numel is None or b.numel is None or same_size(a.numel, b.numel)
        return same_size(a.rows, b.rows) and same_inner
    if a.rows is None and b.rows is None:
        return same_size(a.numel, b.numel)
    wide, flat = (a, b) if a.rows is not None else (b, a)
    if same_size(wide.rows, flat.numel):
        return True
    return (
        wide.numel is not None
        and same_size(wide.numel, flat.numel)
        and not same_size(wide.rows, 1)
        and all(prefix_length(v, wide.rows) is not None for v in flat.stores)
    )


def index_alike(a: Group, b: Group) -> bool:
    """Return True if the largest values that two groups store have the same shape in both."""
    shapes = []
    for group in (a, b):
        full = [
            dense_shape(v)
            for v in group.stores
            if group.numel is not None and same_size(count(v), group.numel)
        ]
        shapes.append({tuple(size_key(s) for s in shape) for shape in full})
    return not shapes[0] or not shapes[1] or shapes[0] == shapes[1]


def merge(a: Group, b: Group) -> None:
    """Make `b` part of `a`, which also takes the place of `b` in the order."""
    if a.rows is None and b.rows is not None:
        a.numel = None if same_size(b.rows, a.numel) else a.numel
        a.rows = b.rows
    if b.numel is not None and a.numel is None and not same_size(b.numel, a.rows):
        a.numel = b.numel
    a.members |= b.members
    a.finals |= b.finals
    a.domains += b.domains
    a.stores = list(dict.fromkeys([*a.stores, *b.stores]))
    contract(a, b)
    a.position = max(a.position, b.position)
    b.into = a


def key_of_columns(node: Node) -> Hashable:
    """Return a key that is equal for reductions with the same loops: (batch, reduced, columns)."""
    return tuple(size_key(s) for s in column_extents(node))


def column_extents(node: Node) -> tuple[SizeLike, SizeLike, SizeLike]:
    """Return the elements before, along and after the reduced dimensions."""
    shape = [resolved(s) for s in node.inputs[0].shape]
    dims = [d for d in node.attributes["dims"] if not is_one(shape[d])]
    last = max(dims)
    batch = product([s for d, s in enumerate(shape) if d < last and d not in dims])
    return batch, product([shape[d] for d in dims]), product(shape[last + 1 :])
