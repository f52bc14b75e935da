"""Running sums along a dimension.

In: nodes of `cumsum`. Out: library kernels. Sums of float32 are kept in float64, as in eager mode,
and begin with -0.0, which changes nothing it is added to. Where the dimension is not the last one,
a tile of columns is summed side by side.
"""

from __future__ import annotations

import functools

from tracejit.jit.ir.graph import Node
from tracejit.jit.ir.sizes import SizeLike
from tracejit.jit.lowering.library import Bound, Library, chunk_of, kernel_of, product_of
from tracejit.jit.lowering.program import Kernel

_WIDER = {"float32": "float64", "float64": "float64", "int32": "int32", "int64": "int64"}
_TILE = 256

_TEXT = '''\
"""Sums of the elements up to each of n, `inner` elements apart."""
import numpy as np
from tracejit.jit.lowering.abi import {dtype}_pointer, {wide}_scratch


def cumsum_{dtype}(buffers, operands, sizes, scratch, status, lo, hi):
    x = {dtype}_pointer(buffers, operands[0])
    out = {dtype}_pointer(buffers, operands[1])
    n = sizes[0]
    inner = sizes[1]
    tiles = sizes[2]
    totals = {wide}_scratch(scratch, 0)
    for unit in range(lo, hi):
        row = unit // tiles
        first = (unit - row * tiles) * {tile}
        width = min({tile}, inner - first)
        start = row * n * inner + first
        if inner == 1:
            total = np.{wide}({zero})
            for t in range(start, start + n):
                total = total + np.{wide}(x[t])
                out[t] = np.{dtype}(total)
        else:
            for t in range(width):
                totals[t] = np.{wide}({zero})
            for k in range(n):
                at = start + k * inner
                for t in range(width):
                    summed = totals[t] + np.{wide}(x[at + t])
                    totals[t] = summed
                    out[at + t] = np.{dtype}(summed)
'''


@functools.cache
def _kernel(dtype: str) -> Kernel:
    wide = _WIDER[dtype]
    zero = "-0.0" if wide == "float64" else "0"
    text = _TEXT.format(dtype=dtype, wide=wide, zero=zero, tile=_TILE)
    return kernel_of(f"cumsum_{dtype}", text, _TILE * 8)


def _takes(node: Node) -> bool:
    return node.outputs[0].dtype.name in _WIDER and node.outputs[0].ndim > 0


def _sizes(node: Node) -> tuple[SizeLike, ...]:
    shape, dim = node.outputs[0].shape, node.attributes["dim"]
    return shape[dim], product_of(shape[dim + 1 :]), product_of(shape[:dim])


def _bound(sizes: tuple[int, ...]) -> Bound:
    n, inner, rows = sizes
    tiles = -(-inner // _TILE)
    total, work = rows * tiles, rows * n * inner * 8
    return Bound((n, inner, max(1, tiles)), total, chunk_of(total, work), _TILE * 8, work)


LIBRARIES = {
    "cumsum": Library(_takes, lambda node: _kernel(node.outputs[0].dtype.name), _sizes, _bound)
}
