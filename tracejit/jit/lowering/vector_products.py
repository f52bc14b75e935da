"""Products of a matrix and a vector: native kernels whose order of additions is fixed.

In: the dtype and extents of a product of which one operand has one row or one column. Out: Kernels,
and how their work is split. Called by `runtime/binding.py` once sizes are known, and by
`runtime/eager_vectors.py`.

The order is that of `core/ops/vector_products.py`, which says why it is so. Where the terms of a
sum lie side by side, a vector holds lanes of one sum, and several sums are made at once. Where sums
lie side by side, a vector holds one lane of several sums. Their lanes are in memory then, a tile of
sums wide. Terms of one lane come together, so that a lane is read and written once for all of them.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tracejit.core.memory import get_num_threads
from tracejit.core.ops.array_sums import PART
from tracejit.core.ops.vector_products import BLOCK, LANES
from tracejit.jit.lowering.abi import VECTOR_BYTES
from tracejit.jit.lowering.extern import MATMUL_SIZES
from tracejit.jit.lowering.library_tile import indented
from tracejit.jit.lowering.program import Kernel

# Integers of a kernel, behind those of a product of matrices. `step_a` is from sum to sum where
# terms lie side by side, else from term to term. `next_*` are from matrix to matrix.
SIZES = ("terms", "step_a", "step_x", "step_out", "count", "next_a", "next_x", "next_out", "tile",
         "lane")  # fmt: skip
ROWS = 4  # sums that are made at once
AT_ONCE = 4  # blocks of a sum alone that are added at once
TOGETHER = 8  # terms of a lane that are added at once
TILE_BYTES = 1 << 14  # of the sums that lie side by side and are made together
APART = 16  # elements between lanes, so that they do not meet in the same set of the cache
WORTH = 1 << 18  # bytes of the matrix that are worth a chunk
MOST_CHUNKS = 16  # chunks
THINNEST = 400  # sums of a chunk that lie side by side: fewer leave rows too short to read ahead

_HEAD = '''\
"""Sums of products of {how} terms, in a fixed order."""
import numpy as np
from tracejit.jit.lowering.abi import (
    address_of, load_part, load_vector, pointer_at, spread, store_vector, vector_sum,
    {imports},
)


def {name}(buffers, operands, sizes, scratch, status, lo, hi):
    out = {dtype}_pointer(buffers, operands[2])
    a = {dtype}_pointer(buffers, operands[3])
    x = {dtype}_pointer(buffers, operands[4])
{sizes}
    unit = lo
    while unit < hi:
        matrix = unit // count
        first = unit - matrix * count
        last = min(count, first + hi - unit)
        unit += last - first
        above = matrix * next_a
        to = matrix * next_out
        at_x = address_of(x) + matrix * next_x * {size}
        if step_x != 1:
            at_x = address_of(int64_scratch(scratch, 0)) + lane * {room}
        v = {dtype}_scratch(pointer_at(at_x), 0)
        if step_x != 1:
            for t in range(terms):
                v[t] = x[matrix * next_x + t * step_x]
{body}
'''

_ROWS = '''\
r = first
while r + {rows} <= last:
{several}
    r += {rows}
while r < last:
    c0 = above + r * step_a
    t0 = 0.0
    p0 = 0.0
    begin = 0
    while begin + {far} <= terms:
        if (begin & {mask}) == 0:
            t0 = t0 + p0
            p0 = 0.0
        whole = {block}
        rest = 0
{many}
        begin += {far}
    while begin < terms:
        if (begin & {mask}) == 0:
            t0 = t0 + p0
            p0 = 0.0
        length = min({block}, terms - begin)
        whole = length // {lanes} * {lanes}
        rest = length - whole
{one}
        begin += {block}
    out[to + r * step_out] = np.{dtype}(t0 + p0)
    r += 1'''

_SEVERAL = '''\
{starts}
for begin in range(0, terms, {block}):
    if (begin & {mask}) == 0:
{parts}
    length = min({block}, terms - begin)
    whole = length // {lanes} * {lanes}
    rest = length - whole
{sums}
{stores}'''

_COLUMNS = '''\
totals = float64_scratch(scratch, 0)
parts = float64_scratch(scratch, 8 * lane)
p = {dtype}_scratch(scratch, 16 * lane)
j = first
while j < last:
    width = min(tile, last - j)
    even = width // {vector} * {vector}
    for i in range(width):
        totals[i] = 0.0
        parts[i] = 0.0
    for begin in range(0, terms, {block}):
        if (begin & {mask}) == 0:
            for i in range(width):
                totals[i] = totals[i] + parts[i]
                parts[i] = 0.0
        end = min(terms, begin + {block})
        for number in range({lanes}):
            at = number * lane
            k = begin + number
            if k + {far} < end:
{begun}
                k += {reach}
            else:
                for i in range(0, width, {vector}):
                    store_vector(p, at + i, spread(np.{dtype}(0.0)))
            while k + {far} < end:
{many}
                k += {reach}
            while k < end:
{one}
                k += {lanes}
        for i in range(width):
{tree}
            parts[i] = parts[i] + np.float64(e1_0)
    for i in range(width):
        out[to + (j + i) * step_out] = np.{dtype}(totals[i] + parts[i])
    j += tile'''


def _size(dtype: str) -> int:
    return 4 if dtype == "float32" else 8


def _kernel(name: str, dtype: str, how: str, body: str, room: int) -> Kernel:
    imports = sorted({f"{dtype}_pointer", f"{dtype}_scratch", "float64_scratch", "int64_scratch"})
    sizes = (f"{size} = sizes[{len(MATMUL_SIZES) + k}]" for k, size in enumerate(SIZES))
    source = _HEAD.format(
        how=how, name=name, dtype=dtype, size=_size(dtype), room=room, imports=", ".join(imports),
        sizes=indented("\n".join(sizes), 1), body=indented(body, 2))  # fmt: skip
    digest = hashlib.sha256(source.encode()).hexdigest()[:32]
    return Kernel(name, source, digest, loops=1)


def _chains(dtype: str, places: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield lines that add blocks, given where each begins in the matrix and in the vector. `whole`
    terms fill the lanes, `rest` do not."""
    step = VECTOR_BYTES // _size(dtype)
    parts = range(0, LANES, step)
    shared = len({x for _, x in places}) == 1
    inner, tail = [], []
    for i, (a, x) in enumerate(places):
        for o in parts:
            yield f"s{i}_{o} = spread(np.{dtype}(0.0))"
            if i == 0 or not shared:
                inner.append(f"x{o} = load_vector(v, {x} + t + {o})")
                tail.append(f"x{o} = load_part(v, {x} + whole + {o}, rest - {o})")
            total = f"s{i}_{o} = s{i}_{o} + "
            inner.append(f"{total}load_vector(a, {a} + t + {o}) * x{o}")
            tail.append(f"{total}load_part(a, {a} + whole + {o}, rest - {o}) * x{o}")
    yield f"for t in range(0, whole, {LANES}):"
    yield indented("\n".join(inner), 1)
    yield "if rest != 0:"
    yield indented("\n".join(tail), 1)
    for i in range(len(places)):
        lanes = " + ".join(f"s{i}_{o}" for o in parts)
        yield f"b{i} = np.float64(vector_sum({lanes}))"


@functools.cache
def rows_kernel(dtype: str) -> Kernel:
    """Return the kernel of sums whose terms lie side by side.

    >>> rows_kernel("float32").name
    'vector_rows_float32'
    """
    fixed = {"block": BLOCK, "lanes": LANES, "mask": PART - 1, "dtype": dtype}
    n = range(ROWS)
    starts = [line for i in n for line in (f"c{i} = above + (r + {i}) * step_a", f"t{i} = 0.0",
                                           f"p{i} = 0.0")]  # fmt: skip
    parts = [line for i in n for line in (f"t{i} = t{i} + p{i}", f"p{i} = 0.0")]
    sums = [*_chains(dtype, [(f"c{i} + begin", "begin") for i in n]),
            *(f"p{i} = p{i} + b{i}" for i in n)]  # fmt: skip
    stores = [f"out[to + (r + {i}) * step_out] = np.{dtype}(t{i} + p{i})" for i in n]
    several = _SEVERAL.format(
        **fixed, starts="\n".join(starts), parts=indented("\n".join(parts), 2),
        sums=indented("\n".join(sums), 1), stores="\n".join(stores))  # fmt: skip
    at_once = [BLOCK * i for i in range(AT_ONCE)]
    many = [*_chains(dtype, [(f"c0 + begin + {o}", f"begin + {o}") for o in at_once]),
            *(f"p0 = p0 + b{i}" for i in range(AT_ONCE))]  # fmt: skip
    one = [*_chains(dtype, [("c0 + begin", "begin")]), "p0 = p0 + b0"]
    body = _ROWS.format(
        **fixed, rows=ROWS, far=BLOCK * AT_ONCE, several=indented(several, 1),
        many=indented("\n".join(many), 2), one=indented("\n".join(one), 2))  # fmt: skip
    return _kernel(f"vector_rows_{dtype}", dtype, "adjacent", body, 0)


def _terms(dtype: str, count: int, begun: bool) -> str:
    """Return lines that add terms `k`, `k` + LANES and so on to their lane of all sums."""
    step = VECTOR_BYTES // _size(dtype)
    lines = [f"w{u} = spread(v[k + {u * LANES}])" for u in range(count)]
    lines += [f"c{u} = above + (k + {u * LANES}) * step_a + j" for u in range(count)]
    start = "load_vector(p, at + {})" if begun else f"spread(np.{dtype}(0.0))"
    for where, load, head in (("i", "load_vector(a, c{} + i)", f"for i in range(0, even, {step}):"),
                              ("even", "load_part(a, c{} + even, width - even)",
                               "if even < width:")):  # fmt: skip
        added = [f"s = s + {load.format(u)} * w{u}" for u in range(count)]
        inner = [f"s = {start.format(where)}", *added, f"store_vector(p, at + {where}, s)"]
        lines += [head, indented("\n".join(inner), 1)]
    return "\n".join(lines)


def _tree() -> Iterator[str]:
    """Yield lines that add the lanes of one sum, the second half to the first and so on."""
    names, count = [f"p[{k} * lane + i]" for k in range(LANES)], LANES
    while count > 1:
        count //= 2
        yield from (f"e{count}_{k} = {names[k]} + {names[k + count]}" for k in range(count))
        names = [f"e{count}_{k}" for k in range(count)]


@functools.cache
def columns_kernel(dtype: str) -> Kernel:
    """Return the kernel of sums that lie side by side."""
    reach = LANES * TOGETHER
    body = _COLUMNS.format(
        dtype=dtype, block=BLOCK, lanes=LANES, mask=PART - 1, reach=reach, far=reach - LANES,
        vector=VECTOR_BYTES // _size(dtype), begun=indented(_terms(dtype, TOGETHER, False), 4),
        many=indented(_terms(dtype, TOGETHER, True), 4), one=indented(_terms(dtype, 1, True), 4),
        tree=indented("\n".join(_tree()), 3))  # fmt: skip
    room = 16 + LANES * _size(dtype)
    return _kernel(f"vector_columns_{dtype}", dtype, "strided", body, room)


class Vectors(NamedTuple):
    """Product with a vector, for known extents.

    - `first`: the vector is the first operand, the matrix the second
    - `sizes`: SIZES
    - `scratch`: bytes that each worker needs
    - `work`: bytes that are read
    """

    kernel: Kernel
    first: bool
    sizes: tuple[int, ...]
    total: int
    chunk: int
    scratch: int
    work: int


def vectors(dtype: str, given: Sequence[int]) -> Vectors | None:
    """Return how a product of these MATMUL_SIZES is made by a kernel of this file; None for a
    product of two matrices.

    >>> vectors("float32", (0, 0, 5, 1, 7, 7, 1, 1, 1, 0, 0, 0)).kernel.name
    'vector_rows_float32'
    """
    trans_a, trans_b, m, n, k, lda, ldb, ldc, batch, next_a, next_b, next_out = given[:12]
    if m != 1 and n != 1:
        return None
    step_a, step_b = (lda if trans_a else 1), (1 if trans_b else ldb)  # from term to term
    first = n != 1 or (m == 1 and step_a != 1)
    if first:
        count, apart, far, step_x, step_out = n, step_b, ldb if trans_b else 1, step_a, 1
        next_a, next_b = next_b, next_a
    else:
        count, apart, far, step_x, step_out = m, step_a, 1 if trans_a else lda, step_b, ldc
    side_by_side = apart == 1
    return _split(dtype, side_by_side, first, batch,
                  (k, far if side_by_side else apart, step_x, step_out, count, next_a, next_b,
                   next_out))  # fmt: skip


def _split(dtype: str, side_by_side: bool, first: bool, batch: int, sizes: tuple[int, ...]
           ) -> Vectors:  # fmt: skip
    terms, _, step_x, _, count = sizes[:5]
    size, total = _size(dtype), batch * count
    work = total * terms * size
    parts = min(MOST_CHUNKS, work // WORTH)
    if not side_by_side:  # results do not depend on the cut: one for each thread, at least two
        parts = min(parts, max(batch, min(total // THINNEST, max(2, get_num_threads()))))
    chunk = -(-total // max(1, parts))
    chunk += -chunk % 16
    tile = min(TILE_BYTES // size, chunk, count + -count % 16)
    tile, lane = (1, 0) if side_by_side else (tile, tile + APART)
    kernel = (rows_kernel if side_by_side else columns_kernel)(dtype)
    scratch = lane * (16 + LANES * size) + (terms * size if step_x != 1 else 0)
    return Vectors(kernel, first, (*sizes, tile, lane), total, max(1, chunk), scratch + 64, work)
