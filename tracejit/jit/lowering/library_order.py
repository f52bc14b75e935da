"""Sorting along a dimension: digits of the keys, or insertion where few are wanted.

In: nodes of `sort` and `topk`. Out: library kernels. An element's key is an integer of its width
with the same order, in which -0.0 is 0.0 and NaN the largest. Descending order takes its
complement. A row is sorted by digits of 11 bits, from the lowest on, which keeps equal ones in
order. If few of many are wanted, each element is compared with the last of the best so far.
"""

from __future__ import annotations

import functools

from tracejit.jit.ir.graph import Node
from tracejit.jit.ir.sizes import SizeLike
from tracejit.jit.lowering.library import Bound, Library, chunk_of, kernel_of, product_of
from tracejit.jit.lowering.program import Kernel

_KEYS = {"float32": "int32", "float64": "int64", "int32": "int32", "int64": "int64"}
_COUNTS = 6 * 2048 * 8  # bytes of scratch: how many keys have a digit, for each of 6 digits

_TEXT = '''\
"""The first `count` of n elements in order, and where they were, for each row."""
import numpy as np
from tracejit.jit.lowering.abi import {dtype}_pointer, int64_pointer, int64_scratch, {key}_scratch
from tracejit.jit.lowering.abi import int32_scratch


def sort_{dtype}(buffers, operands, sizes, scratch, status, lo, hi):
    x = {dtype}_pointer(buffers, operands[0])
    values = {dtype}_pointer(buffers, operands[1])
    indices = int64_pointer(buffers, operands[2])
    n = sizes[0]
    inner = sizes[1]
    count = sizes[2]
    descending = sizes[3]
    few = sizes[4]
    room = sizes[5]
    digits = int64_scratch(scratch, 0)
    keys = {key}_scratch(scratch, {counts})
    moved = {key}_scratch(scratch, {counts} + 8 * room)
    places = int32_scratch(scratch, {counts} + 16 * room)
    taken = int32_scratch(scratch, {counts} + 20 * room)
    turn = np.{key}(0)
    if descending != 0:
        turn = np.{key}(-1)
    for row in range(lo, hi):
        above = row // inner
        base = above * n * inner + row - above * inner
        to = above * count * inner + row - above * inner
        if few == 1:
            filled = 0
            for t in range(n):
                value = x[base + t * inner]
                {signed}
                key = key ^ turn
                if filled < count or key < keys[count - 1]:
                    at = min(filled, count - 1)
                    while at > 0 and key < keys[at - 1]:
                        keys[at] = keys[at - 1]
                        places[at] = places[at - 1]
                        at -= 1
                    keys[at] = key
                    places[at] = np.int32(t)
                    filled = min(filled + 1, count)
        else:
            for t in range({passes} * 2048):
                digits[t] = 0
            for t in range(n):
                value = x[base + t * inner]
                {signed}
                key = (key ^ turn) ^ np.{key}({lowest})
                keys[t] = key
                places[t] = np.int32(t)
                for digit in range({passes}):
                    shift = np.{key}(digit * 11)
                    digits[digit * 2048 + np.int64((key >> shift) & 2047)] += 1
            for digit in range({passes}):
                shift = np.{key}(digit * 11)
                start = 0
                alone = False
                for t in range(digit * 2048, digit * 2048 + 2048):
                    found = digits[t]
                    digits[t] = start
                    start += found
                    alone = alone or found == n
                if not alone:
                    for t in range(n):
                        key = keys[t]
                        bucket = digit * 2048 + np.int64((key >> shift) & 2047)
                        at = digits[bucket]
                        digits[bucket] = at + 1
                        moved[at] = key
                        taken[at] = places[t]
                    for t in range(n):
                        keys[t] = moved[t]
                        places[t] = taken[t]
        for t in range(count):
            at = np.int64(places[t])
            indices[to + t * inner] = at
            values[to + t * inner] = x[base + at * inner]
'''
_FLOAT = '''\
key = (value + {dtype}(0.0)).view(np.{key})
                key = key ^ ((key >> np.{key}({last})) & np.{key}({most}))
                if value != value:
                    key = np.{key}({most})'''


@functools.cache
def _kernel(dtype: str) -> Kernel:
    key = _KEYS[dtype]
    bits = 32 if key == "int32" else 64
    signed = "key = value"
    if dtype.startswith("float"):
        most = 2 ** (bits - 1) - 1
        signed = _FLOAT.format(dtype=f"np.{dtype}", key=key, last=bits - 1, most=most)
    text = _TEXT.format(
        dtype=dtype, key=key, signed=signed, counts=_COUNTS, passes=3 if bits == 32 else 6,
        lowest=-(2 ** (bits - 1)),
    )  # fmt: skip
    return kernel_of(f"sort_{dtype}", text)


def _takes(node: Node) -> bool:
    return node.outputs[0].dtype.name in _KEYS and node.outputs[0].ndim > 0


def _sizes(node: Node) -> tuple[SizeLike, ...]:
    shape, given = node.inputs[0].shape, node.attributes
    dim = given["dim"]
    outer, inner = product_of(shape[:dim]), product_of(shape[dim + 1 :])
    down = given["largest"] if node.op.name == "topk" else given["descending"]
    return shape[dim], inner, node.outputs[0].shape[dim], int(down), outer


def _bound(sizes: tuple[int, ...]) -> Bound:
    n, inner, count, descending, outer = sizes
    few = int(0 < count and (16 * count <= n or count < 8 or n <= 32))
    rows, room = outer * inner if count else 0, -(-n // 16) * 16
    work = rows * n * (8 if few else 64)
    known = n, max(1, inner), count, descending, few, room
    return Bound(known, rows, chunk_of(rows, work), _COUNTS + 24 * room, work)


_ORDER = Library(_takes, lambda node: _kernel(node.outputs[0].dtype.name), _sizes, _bound)
LIBRARIES = {"sort": _ORDER, "topk": _ORDER}
