"""Layout: a group as loops with stores.

In: a group of `fuse.py`. Out: a `Nest`: outer variables (flattened to one range, shared out among
workers), and stores of scalar expressions, each with its own inner variables. Called by `lower.py`;
`printing.py` writes the text. A value is first emitted over flat variables. Those of which // or %
remain are split in two, and all is emitted again.

Before you add a rule here: `lay_out` calls a layout again with the splits found, so it makes a new
`Emission` each time. Splits and scalars know variables by name: two loops of one nest need two
names. A part is laid out before the loop that reads it, since it fills in `partials`. The order of
groups sees to that. `total` and `chunk` depend on shapes alone, or bits would depend on the number
of threads. `_misplaced` comes last, and makes `lower.py` fuse again. `tests/lowering/test_fuse.py`
shows reductions in wrong loops, `test_schedule.py` bits that depend on threads.
`tests/golden/test_kernels.py` shows changed loops.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from tracejit.jit.ir.graph import Graph, Value
from tracejit.jit.ir.sizes import SizeLike, size_max
from tracejit.jit.lowering.emit import Emission, NodeEmitter, Partial, Splits, accumulator
from tracejit.jit.lowering.frequent import Frequent, frequent
from tracejit.jit.lowering.groups import Group, column_extents, count, dense_shape, prefix_length
from tracejit.jit.lowering.index import (
    Index,
    Variable,
    as_index,
    is_one,
    is_zero,
    product,
    resolved,
    same_size,
    size_key,
    unravelled,
)
from tracejit.jit.lowering.long_sums import BLOCK
from tracejit.jit.lowering.scalars import Scalar, walk

WORK = 16384  # elements that one chunk of a range handles, about
TILE = 256  # columns a column reduction keeps in scratch memory
ROUNDS = 8


@dataclass
class Store:
    """`scalar` goes to element `index` of `leaf` (a Value, or a Partial)."""

    leaf: Any
    place: list[Index]  # index tuple, for targets with strides of their own
    scalar: Scalar
    inner: list[Variable] = field(default_factory=list)  # loops inside the outer ones
    added: bool = False  # to what is there
    frequent: Frequent | None = None  # of a sum by index


@dataclass
class Nest:
    """Loops of one kernel. `column`: the variable of a column reduction; `flat`: one loop, nothing
    split."""

    emission: Emission
    outer: list[Variable]
    stores: list[Store]
    total: SizeLike
    chunk: SizeLike
    column: Variable | None = None
    flat: bool = False
    misplaced: set[Value] = field(default_factory=set)  # reductions that loops would repeat

    def filled(self) -> list[Store]:
        """Return stores of at least one element, as far as is known: no others may read
        anything."""
        return [
            s
            for s in self.stores
            if not is_zero(count(s.leaf)) and not any(is_zero(v.extent) for v in s.inner)
        ]

    def leaves(self) -> list[Any]:
        """Return all that is written."""
        beside = [m for s in self.stores if s.frequent is not None for m in s.frequent.memory()]
        return [*(s.leaf for s in self.stores), *beside]

    def roots(self) -> list[Scalar]:
        return [s.scalar for s in self.filled()]

    @property
    def scalars(self) -> list[Scalar]:
        """Scalars that the kernel computes, each after those it needs."""
        # In Python 3.11 `cached_property` has a lock, which a forked child may find taken.
        kept: list[Scalar] | None = vars(self).get("_scalars")
        if kept is None:
            kept = vars(self)["_scalars"] = walk(self.roots())
        return kept


def lay_out(group: Group, graph: Graph, partials: dict[Value, Partial]) -> Nest:
    """Return the loops of a group of kind loop, column, part or scatter. A part also fills in
    `partials`."""
    make = {
        "loop": _rows if group.rows is not None else _flat,
        "column": _columns,
        "part": _parts,
        "scatter": _scatter,
    }
    splits = Splits()
    finals = {v: p for v, p in partials.items() if v in group.finals}
    for _ in range(ROUNDS):
        nest = make[group.kind](group, graph, splits, finals)
        roots = nest.roots()
        if not splits.refine([*roots, *_addresses(nest)]):
            break
    nest.misplaced = _misplaced(nest)
    if group.kind == "part":
        for store in nest.stores:
            partials[store.leaf.value] = store.leaf
    return nest


def _addresses(nest: Nest) -> list[Scalar]:
    """Return store addresses as scalars, so that what they divide by is found as well."""
    emission = nest.emission
    return [emission.load(s.leaf, s.place) for s in nest.stores]


def _flat(group: Group, graph: Graph, splits: Splits, partials: dict) -> Nest:
    emission = Emission(graph, group.members, splits, partials)
    variable = Variable("f", resolved(group.numel))
    stores = []
    for v in group.stores:
        index = unravelled(splits.index(variable), [resolved(s) for s in v.shape])
        stores.append(Store(v, index, emission.value(v, index)))
    leaves = splits.leaves(variable)
    if len(leaves) <= 1:
        return Nest(emission, leaves, stores, product([x.extent for x in leaves]), WORK, flat=True)
    for store in stores:
        store.inner = leaves[-1:]
    total = product([x.extent for x in leaves[:-1]])
    return Nest(emission, leaves[:-1], stores, total, _rows_per_chunk(leaves[-1].extent))


def _rows_per_chunk(inner: SizeLike) -> SizeLike:
    """Return the number of rows with about WORK elements, at least 1."""
    if type(inner) is int:
        return max(1, WORK // max(inner, 1))
    return size_max(1, WORK // size_max(inner, 1))


def _rows(group: Group, graph: Graph, splits: Splits, partials: dict) -> Nest:
    emission = Emission(graph, group.members, splits, partials)
    rows = resolved(group.rows)
    outer = Variable("row", rows)
    inners: dict[Hashable, Variable] = {}
    stores = []
    for v in group.stores:
        shape = [resolved(s) for s in v.shape]
        dense = dense_shape(v)
        lead = prefix_length(v, rows)
        assert lead is not None
        width = product(dense[lead:])
        inner = inners.setdefault(size_key(width), Variable(f"c{len(inners)}", width))
        index = _two_parts(shape, lead, splits.index(outer), splits.index(inner))
        stores.append(Store(v, index, emission.value(v, index), splits.leaves(inner)))
    widths = [s.inner[-1].extent for s in stores if s.inner]
    widths += [fold.extent for fold in emission.folds.values()]
    chunk = _rows_per_chunk(widths[0]) if widths else WORK
    return Nest(emission, splits.leaves(outer), stores, rows, chunk)


def _two_parts(shape: list[SizeLike], lead: int, row: Index, inner: Index) -> list[Index]:
    """Return the index tuple whose first `lead` dimensions (not counting those of 1) come from
    `row`."""
    dense = [d for d, s in enumerate(shape) if not is_one(s)]
    first = unravelled(row, [shape[d] for d in dense[:lead]])
    rest = unravelled(inner, [shape[d] for d in dense[lead:]])
    place = dict(zip(dense, [*first, *rest]))
    return [place.get(d, as_index(0)) for d in range(len(shape))]


def _columns(group: Group, graph: Graph, splits: Splits, partials: dict) -> Nest:
    emission = Emission(graph, group.members, splits, partials)
    assert group.node is not None
    batch, _, columns = column_extents(group.node)
    outer, column = Variable("batch", batch), Variable("column", columns)
    # Totals in scratch memory have one number for each column of a tile.
    splits.fixed.add("column")
    stores = []
    for v in group.stores:
        place = iter(unravelled(splits.index(outer), _before(v)))
        across = iter(unravelled(as_index(column), _after(v)))
        index = []
        for kind in _sides(v):
            index.append(
                next(place)
                if kind == "batch"
                else next(across)
                if kind == "column"
                else as_index(0)
            )
        stores.append(Store(v, index, emission.value(v, index)))
    tiles = (columns + TILE - 1) // TILE
    return Nest(emission, splits.leaves(outer), stores, batch * tiles, 1, column=column)


def _sides(v: Value) -> list[str]:
    """Return "batch" for each dimension of a reduction's result before the last reduced one,
    "column" behind it, "none" for those reduced."""
    assert v.node is not None
    shape, dims = v.node.inputs[0].shape, v.node.attributes["dims"]
    last = max(d for d in dims if not is_one(resolved(shape[d])))
    keepdim = v.node.attributes.get("keepdim", False)
    return [
        "none" if d in dims else "batch" if d < last else "column"
        for d in range(len(shape))
        if keepdim or d not in dims
    ]


def _before(v: Value) -> list[SizeLike]:
    return [resolved(s) for s, side in zip(v.shape, _sides(v)) if side == "batch"]


def _after(v: Value) -> list[SizeLike]:
    return [resolved(s) for s, side in zip(v.shape, _sides(v)) if side == "column"]


def _scatter(group: Group, graph: Graph, splits: Splits, partials: dict) -> Nest:
    """Lay out a scatter in one piece and in order, so that sums have one order and the last write
    wins."""
    emission = Emission(graph, group.members, splits, partials)
    (v,) = group.stores
    assert v.node is not None and v.node.op.scatter is not None
    how, node = v.node.op.scatter, v.node
    whole, each = Variable("f", count(v)), Variable("e", count(node.inputs[how.source]))
    place = unravelled(splits.index(whole), [resolved(s) for s in v.shape])
    copied = emission.value(node.inputs[0], place)
    source = node.inputs[how.source]
    index = unravelled(splits.index(each), [resolved(s) for s in source.shape])
    target = how.target(NodeEmitter(emission, node, v), index, **node.attributes)
    written = emission.value(source, index)
    loops = splits.leaves(each)
    added = Store(v, [as_index(i) for i in target], written, loops, how.combine == "add")
    if how.named is not None:
        dims, most = how.named(node.inputs, **node.attributes)
        added.frequent = frequent(v, dims, resolved(most), added.place, loops)
    stores = [Store(v, place, copied, splits.leaves(whole)), added]
    return Nest(emission, [], stores, 1, 1)


def _parts(group: Group, graph: Graph, splits: Splits, partials: dict) -> Nest:
    """Lay out full reductions: one element for each BLOCK elements, or for each row where the input
    is not flat."""
    numel = resolved(group.domains[0])
    flat = Variable("r", numel)
    # Blocks of the flat range; where that leaves // or %, a part for each row.
    if "r" not in splits.parts:
        extent = (numel + BLOCK - 1) // BLOCK
        part = Variable("part", extent)
        outer = [] if is_one(extent) else [part]
        flat.start, flat.stop = as_index(part) * BLOCK if outer else as_index(0), numel
        emission = Emission(graph, group.members, splits, chunks=dict.fromkeys(group.stores, flat))
        nest = _part_nest(group, emission, outer, extent, max(1, WORK // BLOCK))
        if not splits.refine(nest.roots(), partial=True):
            return nest
        flat = Variable("r", numel)
    emission = Emission(graph, group.members, splits, chunks=dict.fromkeys(group.stores, flat))
    leaves = splits.leaves(flat)
    emission.chunk_loops = leaves[-1:]
    rows = product([x.extent for x in leaves[:-1]])
    return _part_nest(group, emission, leaves[:-1], rows, _rows_per_chunk(leaves[-1].extent))


def _part_nest(
    group: Group, emission: Emission, outer: list[Variable], extent: SizeLike, chunk: SizeLike
) -> Nest:
    stores = []
    place: Index = as_index(0)
    for variable in outer:
        place = place * variable.extent + as_index(variable)
    for v in group.stores:
        assert v.node is not None
        scalar = emission.value(v, [as_index(0)] * v.ndim)
        partial = Partial(v, extent)
        partial.dtype = accumulator(v.node)
        stores.append(Store(partial, [place], scalar))
    return Nest(emission, outer, stores, extent, chunk)


def _misplaced(nest: Nest) -> set[Value]:
    """Return reductions that another kernel must store.

    Some would be computed again and again, as they depend on an inner loop's variable. Others would
    be computed for nothing: a branch reads them, and their loads may not exist. Other elements of a
    reduction that is stored here are no exception.
    """
    emission = nest.emission
    own = {s.number for store in nest.stores for s in walk([store.scalar])
           if s.kind == "fold" and emission.reduced[s.number] is store.leaf}
    allowed = {v.name for v in nest.outer}
    if nest.column is not None:
        allowed.add(nest.column.name)
    lazily: set[int] = set()
    found = set()
    # Readers come first here, so operands learn that only a branch reads them.
    for scalar in reversed(nest.scalars):
        branches = scalar.args[1:] if scalar.kind == "choice" else ()
        lazily |= {a.number for a in branches}
        if scalar.number in lazily:
            lazily |= {a.number for a in scalar.reads()}
        placed = scalar.variables <= allowed and scalar.number not in lazily
        if scalar.kind == "fold" and not placed and scalar.number not in own:
            found.add(emission.reduced[scalar.number])
    return found


def same_loops(a: list[Variable], b: list[Variable]) -> bool:
    return len(a) == len(b) and all(
        x.name == y.name and same_size(x.extent, y.extent) for x, y in zip(a, b)
    )
