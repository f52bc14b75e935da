"""Convolutions and their gradients: windows are copied into a matrix that fits the cache, which
meets BLAS.

In: nodes of `conv`, `conv_input`, `conv_weight` in float32 or float64. Out: library kernels. One to
three spatial dimensions are three; the matrix has a row for each element of a window in each
channel, and a column for each window of a block of rows of windows.
"""

from __future__ import annotations

import functools
from typing import Any

from tracejit.ir.graph import Node
from tracejit.ir.sizes import SizeLike
from tracejit.lowering.library import MOST, Bound, Library, chunk_of, kernel_of
from tracejit.lowering.program import Kernel

_NAMES = (
    "n", "c", "d", "h", "w", "o", "kd", "kh", "kw", "od", "oh", "ow", "sd", "sh", "sw",
    "pd", "ph", "pw", "ed", "eh", "ew", "groups", "rows", "blocks", "parts", "whole", "room",
    "routine",
)  # fmt: skip
_CACHED = 1 << 16  # elements of a matrix that stay in the cache between copy and product
_FEWEST = 192  # columns that are worth a product
_WIDEST = 8  # bytes of an element, at most
_HEADER = 128  # bytes of scratch for what BLAS is told

_START = '''\
"""{what}"""
import numpy as np
from tracejit.lowering.abi import (
    address_of, call_function, {dtype}_pointer, {dtype}_scratch, int64_scratch,
)


def {name}(buffers, operands, sizes, scratch, status, lo, hi):
    a = {dtype}_pointer(buffers, operands[0])
    b = {dtype}_pointer(buffers, operands[1])
    out = {dtype}_pointer(buffers, operands[2])
{fetches}
    words = int64_scratch(scratch, 0)
    numbers = {dtype}_scratch(scratch, 64)
    totals = {dtype}_scratch(scratch, 128)
    columns = {dtype}_scratch(scratch, 128 + room)
    at_a = address_of(a)
    at_b = address_of(b)
    at_out = address_of(out)
    at_totals = address_of(totals)
    at_columns = address_of(columns)
    at = address_of(words)
    one = address_of(numbers)
    numbers[0] = 1.0
    numbers[1] = 0.0
    windows = od * oh * ow
    taps = kd * kh * kw
    inputs = c // groups * taps
    outputs = o // groups
'''

# Rows of the matrix: which element of a window each is, and which windows have it inside.
_ROWS = '''\
channel = above // taps
tap = above - channel * taps
at_d = tap // (kh * kw)
tap = tap - at_d * kh * kw
at_h = tap // kw
at_w = tap - at_h * kw
z0 = first // oh
y0 = first - z0 * oh
for k in range(above, below):
    start = at_w * ew - pw
    low = -start
    high = w - start
    if sw != 1:
        low = (sw - 1 - start) // sw
        high = (w - 1 - start) // sw + 1
    low = min(max(0, low), ow)
    high = max(low, min(ow, high))
    plane = (image * c + channel) * d * h * w
    to = (k - above) * width
    z = z0
    y = y0
    for row in range(first, last):
        i = z * sd - pd + at_d * ed
        j = y * sh - ph + at_h * eh
        inside = i >= 0 and i < d and j >= 0 and j < h
        source = plane + (i * h + j) * w + start
{body}
        to += ow
        y += 1
        if y == oh:
            y = 0
            z += 1
    at_w += 1
    if at_w == kw:
        at_w = 0
        at_h += 1
        if at_h == kh:
            at_h = 0
            at_d += 1
            if at_d == kd:
                at_d = 0
                channel += 1
'''

_COPY = '''\
if inside:
    for t in range(low):
        columns[to + t] = 0.0
    if sw == 1:
        for t in range(low, high):
            columns[to + t] = {x}[source + t]
    else:
        for t in range(low, high):
            columns[to + t] = {x}[source + t * sw]
    for t in range(high, ow):
        columns[to + t] = 0.0
else:
    for t in range(ow):
        columns[to + t] = 0.0
'''

_ADD = '''\
if inside:
    if sw == 1:
        for t in range(low, high):
            out[source + t] += columns[to + t]
    else:
        for t in range(low, high):
            out[source + t * sw] += columns[to + t]
'''

# BLAS sees the transposed problem, column by column: C^T = op(B)^T op(A)^T.
_PRODUCT = '''\
words[0] = {trans_b}
words[1] = {trans_a}
words[2] = {n}
words[3] = {m}
words[4] = {k}
words[5] = max(1, {ldb})
words[6] = max(1, {lda})
words[7] = max(1, {ldc})
call_function(
    routine, at, at + 8, at + 16, at + 24, at + 32, one, {b}, at + 40, {a}, at + 48,
    {beta}, {c}, at + 56,
)
'''
_NO, _YES = 78, 84  # "N" and "T"

_FORWARD = '''\
    for unit in range(lo, hi):
        image = unit // blocks
        first = (unit - image * blocks) * rows
        last = min(first + rows, od * oh)
        width = (last - first) * ow
        for group in range(groups):
            above = group * inputs
            below = above + inputs
            to_out = at_out + ((image * o + group * outputs) * windows + first * ow) * {size}
            to_weight = at_b + group * outputs * inputs * {size}
            if whole == 1:
                source = at_a + ((image * groups + group) * inputs * windows + first * ow) * {size}
{direct}
            else:
{columns}
{product}
'''

_INPUT = '''\
    for unit in range(lo, hi):
        image = unit // parts
        part = unit - image * parts
        from_row = c * part // parts * taps
        to_row = c * (part + 1) // parts * taps
        if whole == 0:
            for t in range(from_row // taps * d * h * w, to_row // taps * d * h * w):
                out[image * c * d * h * w + t] = 0.0
        for group in range(groups):
            above = max(from_row, group * inputs)
            below = min(to_row, group * inputs + inputs)
            if above < below:
                to_weight = at_b + (group * outputs * inputs + above - group * inputs) * {size}
                for block in range(blocks):
                    first = block * rows
                    last = min(first + rows, od * oh)
                    width = (last - first) * ow
                    source = at_a + ((image * o + group * outputs) * windows + first * ow) * {size}
                    if whole == 1:
                        to_out = at_out + ((image * c + above) * windows + first * ow) * {size}
{direct}
                    else:
{product}
{columns}
'''

# Columns times gradients, summed with outputs innermost: BLAS is faster that way round.
_WEIGHT = '''\
    for group in range(groups):
        above = max(lo, group * inputs)
        below = min(hi, group * inputs + inputs)
        for t in range(max(0, below - above) * outputs):
            totals[t] = 0.0
        if above < below:
            for image in range(n):
                for block in range(blocks):
                    first = block * rows
                    last = min(first + rows, od * oh)
                    width = (last - first) * ow
                    from_b = at_b + ((image * o + group * outputs) * windows + first * ow) * {size}
                    if whole == 1:
                        source = at_a + ((image * c + above) * windows + first * ow) * {size}
{direct}
                    else:
{columns}
{product}
            for t in range(outputs):
                to = (group * outputs + t) * inputs - group * inputs
                for k in range(above, below):
                    out[to + k] = totals[(k - above) * outputs + t]
'''


def _indented(text: str, depth: int) -> str:
    return "\n".join(" " * 4 * depth + line for line in text.splitlines())


def _rows(body: str, depth: int) -> str:
    return _indented(_ROWS.format(body=_indented(body, 2)), depth)


def _product(depth: int, **parts: Any) -> str:
    return _indented(_PRODUCT.format(**parts), depth)


def _forward(size: int) -> str:
    common: dict[str, Any] = {
        "trans_b": _NO, "trans_a": _NO, "n": "width", "m": "outputs", "k": "inputs",
        "lda": "inputs", "ldc": "windows", "a": "to_weight", "beta": f"one + {size}",
        "c": "to_out",
    }  # fmt: skip
    return _FORWARD.format(
        size=size, columns=_rows(_COPY.format(x="a"), 4),
        direct=_product(4, b="source", ldb="windows", **common),
        product=_product(4, b="at_columns", ldb="width", **common),
    )  # fmt: skip


def _input(size: int) -> str:
    common: dict[str, Any] = {
        "trans_b": _NO, "trans_a": _YES, "n": "width", "m": "below - above", "k": "outputs",
        "ldb": "windows", "lda": "inputs", "a": "to_weight", "b": "source",
        "beta": f"one + {size}",
    }  # fmt: skip
    return _INPUT.format(
        size=size, columns=_rows(_ADD, 6),
        direct=_product(6, c="to_out", ldc="windows", **common),
        product=_product(6, c="at_columns", ldc="width", **common),
    )  # fmt: skip


def _weight(size: int) -> str:
    common: dict[str, Any] = {
        "trans_b": _YES, "trans_a": _NO, "n": "outputs", "m": "below - above", "k": "width",
        "ldb": "windows", "ldc": "outputs", "b": "from_b", "beta": "one", "c": "at_totals",
    }  # fmt: skip
    return _WEIGHT.format(
        size=size, columns=_rows(_COPY.format(x="a"), 6),
        direct=_product(6, a="source", lda="windows", **common),
        product=_product(6, a="at_columns", lda="width", **common),
    )  # fmt: skip


_WHAT = {
    "conv": "Windows of a times weights b, for each image and block of windows.",
    "conv_input": "What each input element gets back from gradients a of windows times weights b.",
    "conv_weight": "Gradients b of windows times windows of a: rows lo to hi of each weight.",
}
_BODIES = {"conv": _forward, "conv_input": _input, "conv_weight": _weight}


@functools.cache
def _kernel(op: str, dtype: str) -> Kernel:
    name = f"{op}_{dtype}"
    fetches = "\n".join(f"    {n} = sizes[{k}]" for k, n in enumerate(_NAMES))
    start = _START.format(what=_WHAT[op], dtype=dtype, name=name, fetches=fetches)
    return kernel_of(name, start + _BODIES[op](4 if dtype == "float32" else 8), _HEADER)


def _kernel_of(node: Node) -> Kernel:
    return _kernel(node.op.name, node.outputs[0].dtype.name)


def _takes(node: Node) -> bool:
    return node.outputs[0].dtype.name in ("float32", "float64")


def _three(sizes: Any, fill: int) -> tuple[SizeLike, ...]:
    return (*(fill,) * (3 - len(sizes)), *sizes)


def _sizes(node: Node) -> tuple[SizeLike, ...]:
    """The first of `_NAMES`; the others follow when these are known."""
    first, second = (x.shape for x in node.inputs)
    if node.op.name == "conv":
        images, weights, windows = first, second, node.outputs[0].shape
    elif node.op.name == "conv_input":
        images, weights, windows = node.outputs[0].shape, second, first
    else:
        images, weights, windows = first, node.outputs[0].shape, second
    given = node.attributes
    return (
        images[0], images[1], *_three(images[2:], 1), weights[0], *_three(weights[2:], 1),
        *_three(windows[2:], 1), *_three(given["stride"], 1), *_three(given["padding"], 0),
        *_three(given["dilation"], 1), given["groups"],
    )  # fmt: skip


def _bound(op: str, sizes: tuple[int, ...]) -> Bound:
    n, c, d, h, w, o, kd, kh, kw, od, oh, ow = sizes[:12]
    groups = max(1, sizes[21])
    inputs, windows = c // groups * kd * kh * kw, od * oh * ow
    plain = sizes[6:9] == (1, 1, 1) and sizes[12:18] == (1, 1, 1, 0, 0, 0)
    whole = int(plain and (d, h, w) == (od, oh, ow))
    wanted = max(_FEWEST, _CACHED // max(1, inputs))
    rows = max(1, min(od * oh, -(-wanted // max(1, ow))))
    blocks = -(-od * oh // rows) if windows else 0
    work = n * windows * inputs * o // 4 + n * windows * inputs * _WIDEST
    parts = 1
    if op == "conv":
        total = n * blocks
        chunk = chunk_of(total, work)
    elif op == "conv_input":
        parts = max(1, min(c, -(-8 // max(1, n)))) if work > 1 << 20 else 1
        total = n * parts
        chunk = chunk_of(total, work)
    else:
        total = groups * inputs
        chunk = _rows_of_chunk(total, work)
    room = -(-chunk * (o // groups) * _WIDEST // 64) * 64 if op == "conv_weight" else 0
    scratch = _HEADER + room + (0 if whole else inputs * rows * ow * _WIDEST)
    return Bound((*sizes, rows, blocks, parts, whole, room), total, chunk, scratch, work)


def _rows_of_chunk(total: int, work: int) -> int:
    """Rows of weights for one worker: thick enough for a product."""
    parts = max(1, min(MOST // 4, work >> 20, total // 12))
    return max(1, -(-total // parts))


LIBRARIES = {
    op: Library(_takes, _kernel_of, _sizes, functools.partial(_bound, op), routines=True)
    for op in _BODIES
}
