"""Max pooling and its gradient: the largest element of each window, one plane of an image after the
other.

In: nodes of `max_pool*d` and `max_pool_backward` in float32 or float64. Out: library kernels. One
to three spatial dimensions are three.
"""

from __future__ import annotations

import functools

from tracejit.jit.ir.graph import Node
from tracejit.jit.ir.sizes import SizeLike
from tracejit.jit.lowering.library import Bound, Library, chunk_of, kernel_of, product_of
from tracejit.jit.lowering.library_tile import indented
from tracejit.jit.lowering.program import Kernel

_NAMES = (
    "d", "h", "w", "od", "oh", "ow", "kd", "kh", "kw", "sd", "sh", "sw", "pd", "ph", "pw",
    "ed", "eh", "ew",
)  # fmt: skip

_LARGEST = '''\
"""The largest element of each window, and where it is: the first of equal ones, or the last NaN."""
import numpy as np
from tracejit.jit.lowering.abi import {dtype}_pointer, int64_pointer


def max_pool_{dtype}(buffers, operands, sizes, scratch, status, lo, hi):
    x = {dtype}_pointer(buffers, operands[0])
    out = {dtype}_pointer(buffers, operands[1])
    at = int64_pointer(buffers, operands[2])
    lowest = np.{dtype}(-np.inf)
{fetches}
    for row in range(lo * od * oh, hi * od * oh):
        plane = row // (od * oh)
        rest = row - plane * od * oh
        a = rest // oh
        b = rest - a * oh
        to = row * ow
        for t in range(to, to + ow):
            at[t], out[t] = -1, lowest
        for u in range(kd):
            i = a * sd - pd + u * ed
            for v in range(kh):
                j = b * sh - ph + v * eh
                if i >= 0 and i < d and j >= 0 and j < h:
                    line = (i * h + j) * w
                    for k in range(kw):
                        start = k * ew - pw
                        low = min(max(0, (sw - 1 - start) // sw), ow)
                        high = max(low, min(ow, (w - 1 - start) // sw + 1))
                        source = plane * d * h * w + line + start
{ways}
        for t in range(to, to + ow):  # windows of which all is padding
            at[t] = max(at[t], 0)
'''
_VISIT = '''\
for t in range(low, high):
    value = x[source + t * {step}]
    best = out[to + t]
    place = at[to + t]
    better = value > best or value != value or place < 0
    out[to + t] = value if better else best
    at[to + t] = line + start + t * {step} if better else place
'''

_ADDED = '''\
"""Each gradient a added at its place b in its plane."""
import numpy as np
from tracejit.jit.lowering.abi import {dtype}_pointer, int64_pointer


def max_pool_backward_{dtype}(buffers, operands, sizes, scratch, status, lo, hi):
    a = {dtype}_pointer(buffers, operands[0])
    b = int64_pointer(buffers, operands[1])
    out = {dtype}_pointer(buffers, operands[2])
    windows = sizes[0]
    elements = sizes[1]
    for t in range(lo * elements, hi * elements):
        out[t] = 0.0
    for plane in range(lo, hi):
        to = plane * elements
        for t in range(plane * windows, plane * windows + windows):
            out[to + b[t]] += a[t]
'''


@functools.cache
def _largest(dtype: str) -> Kernel:
    ways = []
    for test, step in (("if sw == 1:", "1"), ("elif sw == 2:", "2"), ("else:", "sw")):
        ways += [test, indented(_VISIT.format(step=step), 1)]
    fetches = "\n".join(f"    {n} = sizes[{k}]" for k, n in enumerate(_NAMES))
    text = _LARGEST.format(dtype=dtype, fetches=fetches, ways=indented("\n".join(ways), 6))
    return kernel_of(f"max_pool_{dtype}", text)


@functools.cache
def _added(dtype: str) -> Kernel:
    return kernel_of(f"max_pool_backward_{dtype}", _ADDED.format(dtype=dtype))


def _takes(node: Node) -> bool:
    return node.outputs[0].dtype.name in ("float32", "float64")


def _three(sizes: tuple, fill: int) -> tuple[SizeLike, ...]:
    return (*(fill,) * (3 - len(sizes)), *sizes)


def _sizes(node: Node) -> tuple[SizeLike, ...]:
    """Return the sizes `_NAMES`, and the number of planes."""
    shape, given = node.inputs[0].shape, node.attributes
    fills = ("out", 1), ("kernel", 1), ("stride", 1), ("padding", 0), ("dilation", 1)
    parts = [_three(tuple(given[name]), fill) for name, fill in fills]
    return (
        *_three(tuple(shape[2:]), 1), *(x for part in parts for x in part), shape[0] * shape[1]
    )  # fmt: skip


def _bound(sizes: tuple[int, ...]) -> Bound:
    *known, planes = sizes
    work = planes * (16 + product_of(known[3:9])) * 4
    return Bound(tuple(known), planes, chunk_of(planes, work), work=work)


def _added_sizes(node: Node) -> tuple[SizeLike, ...]:
    grad, sizes = node.inputs[0].shape, node.attributes["sizes"]
    return product_of(grad[2:]), product_of(sizes), grad[0] * grad[1]


def _added_bound(sizes: tuple[int, ...]) -> Bound:
    windows, elements, planes = sizes
    work = planes * (12 * windows + 4 * elements)
    return Bound((windows, elements), planes, chunk_of(planes, work), work=work)


_POOLING = Library(_takes, lambda node: _largest(node.outputs[0].dtype.name), _sizes, _bound)
LIBRARIES = {
    **{f"max_pool{n}d": _POOLING for n in (1, 2, 3)},
    "max_pool_backward": Library(
        _takes, lambda node: _added(node.outputs[0].dtype.name), _added_sizes, _added_bound
    ),
}
