"""Convolutions and their gradients: windows are copied into a matrix that fits the cache, and
multiplied there.

In: nodes of `conv`, `conv_input`, `conv_weight` in float32 or float64. Out: library kernels. One to
three spatial dimensions are three. The matrix has a row for each element of a window in each
channel. It has a column for each window of a block of rows of windows. Where images have few
windows, those of several images lie beside one another.
"""

from __future__ import annotations

import functools
from typing import Any

from tracejit.jit.ir.graph import Node
from tracejit.jit.ir.sizes import SizeLike
from tracejit.jit.lowering.abi import VECTOR_BYTES
from tracejit.jit.lowering.library import MOST, Bound, Library, chunk_of, kernel_of
from tracejit.jit.lowering.library_tile import columns_of, indented, product, tile_of
from tracejit.jit.lowering.program import Kernel

_NAMES = (
    "n", "c", "d", "h", "w", "o", "kd", "kh", "kw", "od", "oh", "ow", "sd", "sh", "sw",
    "pd", "ph", "pw", "ed", "eh", "ew", "groups", "rows", "blocks", "parts", "level", "together",
    "ld", "lo_o", "at_panel", "at_totals", "at_sums",
)  # fmt: skip
_CACHED = 1 << 16  # elements of a matrix that stay in the cache between copy and product
_FEWEST = 192  # columns that are worth a product
_WIDEST = 8  # bytes of an element, at most
_LONG = 4096  # windows, or so, of which one sum of gradients is made
_APART = 16  # elements between rows of a matrix, lest they meet in the cache

_START = '''\
"""{what}"""
import numpy as np
from tracejit.jit.lowering.abi import (
    load_vector, spread, store_vector, {imports},
)


def {name}(buffers, operands, sizes, scratch, status, lo, hi):
    a = {dtype}_pointer(buffers, operands[0])
    b = {dtype}_pointer(buffers, operands[1])
    out = {dtype}_pointer(buffers, operands[2])
{fetches}
    tile = {dtype}_scratch(scratch, 0)
    columns = {dtype}_scratch(scratch, {tile_bytes})
    panel = {dtype}_scratch(scratch, at_panel)
    totals = {dtype}_scratch(scratch, at_totals)
    sums = float64_scratch(scratch, at_sums)
    windows = od * oh * ow
    taps = kd * kh * kw
    inputs = c // groups * taps
    outputs = o // groups
'''

# Rows of the matrix: which element of a window each is, and which windows have it inside. Where
# windows lie as the elements do (`level`), rows of windows are copied together.
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
    to = (k - above) * ld + beside
    if level == 1:
        j = at_h * eh - ph
        top = min(max(first, -j), last)
        bottom = max(top, min(last, h - j))
        source = plane + (first + j) * w + start
        from_t = (top - first) * ow + low
        to_t = (bottom - first) * ow - ow + high
{level}
    else:
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

_EDGES = '''\
for t in range(low):
    for row in range(top - first, bottom - first):
        columns[to + row * ow + t] = 0.0
for t in range(high, ow):
    for row in range(top - first, bottom - first):
        columns[to + row * ow + t] = 0.0
'''

_COPY_LEVEL = '''\
if top > first or bottom < last:
    for t in range(across):
        columns[to + t] = 0.0
for t in range(from_t, to_t):
    columns[to + t] = a[source + t]
''' + _EDGES

_COPY = '''\
if not inside or low > 0 or high < ow:
    for t in range(ow):
        columns[to + t] = 0.0
if inside and sw == 1:
    for t in range(low, high):
        columns[to + t] = a[source + t]
elif inside:
    for t in range(low, high):
        columns[to + t] = a[source + t * sw]
'''

_ADD_LEVEL = _EDGES + '''\
for t in range(from_t, to_t):
    out[source + t] += columns[to + t]
'''

_ADD = '''\
if inside:
    for t in range(low, high):
        out[source + t * sw] += columns[to + t]
'''

_FORWARD = '''\
    for unit in range(lo, hi):
        turn = unit // blocks
        start_image = turn * together
        end_image = min(n, start_image + together)
        first = (unit - turn * blocks) * rows
        last = min(first + rows, od * oh)
        across = (last - first) * ow
        width = (end_image - start_image) * across
        for group in range(groups):
            above = group * inputs
            below = above + inputs
            weights = group * outputs * inputs
            for image in range(start_image, end_image):
                beside = (image - start_image) * across
{columns}
            if together == 1:
                to_out = (start_image * o + group * outputs) * windows + first * ow
{product}
            else:
{beside}
                for image in range(start_image, end_image):
                    for t in range(outputs):
                        to_out = (image * o + group * outputs + t) * windows
                        source = t * ld + (image - start_image) * across
                        for row in range(across):
                            out[to_out + row] = panel[source + row]
'''

# The gradients of a block are copied beside one another first: they may be read beyond their end.
_INPUT = '''\
    for unit in range(lo, hi):
        turn = unit // parts
        part = unit - turn * parts
        start_image = turn * together
        end_image = min(n, start_image + together)
        from_row = c * part // parts * taps
        to_row = c * (part + 1) // parts * taps
        for image in range(start_image, end_image):
            for t in range(from_row // taps * d * h * w, to_row // taps * d * h * w):
                out[image * c * d * h * w + t] = 0.0
        for group in range(groups):
            above = max(from_row, group * inputs)
            below = min(to_row, group * inputs + inputs)
            if above < below:
                height = below - above
                weights = group * outputs * inputs + above - group * inputs
                for block in range(blocks):
                    first = block * rows
                    last = min(first + rows, od * oh)
                    across = (last - first) * ow
                    width = (end_image - start_image) * across
                    for image in range(start_image, end_image):
                        for t in range(outputs):
                            source = (image * o + group * outputs + t) * windows + first * ow
                            to = t * ld + (image - start_image) * across
                            for row in range(across):
                                panel[to + row] = a[source + row]
{product}
                    for image in range(start_image, end_image):
                        beside = (image - start_image) * across
{columns}
'''

# Gradients lie with outputs innermost, and so do sums, until all images are in. Sums of about _LONG
# windows are added in float64.
_WEIGHT = '''\
    for group in range(groups):
        above = max(lo, group * inputs)
        below = min(hi, group * inputs + inputs)
        height = max(0, below - above)
        for t in range(height * lo_o):
            totals[t] = 0.0
            sums[t] = 0.0
        since = 0
        if above < below:
            for turn in range((n + together - 1) // together):
                start_image = turn * together
                end_image = min(n, start_image + together)
                for block in range(blocks):
                    first = block * rows
                    last = min(first + rows, od * oh)
                    across = (last - first) * ow
                    width = (end_image - start_image) * across
                    for image in range(start_image, end_image):
                        beside = (image - start_image) * across
                        source = (image * o + group * outputs) * windows + first * ow
                        for from_t in range(0, outputs, {lanes}):
                            for row in range(across):
                                for t in range(from_t, min(from_t + {lanes}, outputs)):
                                    panel[(beside + row) * lo_o + t] = b[source + t * windows + row]
{columns}
                    for cut in range(0, width, {long}):
                        deep = min({long}, width - cut)
{product}
                        since += deep
                        if since >= {long}:
                            since = 0
                            for t in range(height * lo_o):
                                sums[t] += np.float64(totals[t])
                                totals[t] = 0.0
            for t in range(outputs):
                to = (group * outputs + t) * inputs - group * inputs
                for k in range(above, below):
                    at = (k - above) * lo_o + t
                    out[to + k] = np.{dtype}(sums[at] + np.float64(totals[at]))
'''


def _rows(level: str, body: str, depth: int) -> str:
    text = _ROWS.format(level=indented(level, 2), body=indented(body, 3))
    return indented(text, depth)


def _forward(dtype: str) -> str:
    operands = "outputs", "width", "inputs", "b[weights", "inputs", "1", "columns[0", "ld"
    alone = product(*operands, "out[to_out", "windows", dtype, padded=False)
    beside = product(*operands, "panel[0", "ld", dtype)
    return _FORWARD.format(
        columns=_rows(_COPY_LEVEL, _COPY, 4), product=indented(alone, 4),
        beside=indented(beside, 4),
    )  # fmt: skip


def _input(dtype: str) -> str:
    multiplied = product(
        "height", "width", "outputs", "b[weights", "1", "inputs", "panel[0", "ld", "columns[0",
        "ld", dtype, pack="totals",
    )  # fmt: skip
    return _INPUT.format(
        columns=_rows(_ADD_LEVEL, _ADD, 6), product=indented(multiplied, 5)
    )  # fmt: skip


def _weight(dtype: str) -> str:
    wide, narrow = (
        product(
            "height", "outputs", "deep", "columns[cut", "ld", "1", "panel[cut * lo_o", "lo_o",
            "totals[0", "lo_o", dtype, added=True, narrow=narrow,
        )  # fmt: skip
        for narrow in (False, True)
    )
    lanes = VECTOR_BYTES // (4 if dtype == "float32" else 8)
    parts = f"if outputs > {lanes}:", indented(wide, 1), "else:", indented(narrow, 1)
    multiplied = "\n".join(parts)
    return _WEIGHT.format(
        columns=_rows(_COPY_LEVEL, _COPY, 6), product=indented(multiplied, 6), lanes=lanes,
        long=_LONG, dtype=dtype,
    )  # fmt: skip


_WHAT = {
    "conv": "Windows of a times weights b, for each image and block of windows.",
    "conv_input": "What each input element gets back from gradients a of windows times weights b.",
    "conv_weight": "Gradients b of windows times windows of a: rows lo to hi of each weight.",
}
_BODIES = {"conv": _forward, "conv_input": _input, "conv_weight": _weight}


@functools.cache
def _kernel(op: str, dtype: str, tile: tuple[int, int]) -> Kernel:
    name = f"{op}_{dtype}"
    fetches = "\n".join(f"    {n} = sizes[{k}]" for k, n in enumerate(_NAMES))
    start = _START.format(
        what=_WHAT[op], dtype=dtype, name=name, fetches=fetches, tile_bytes=_tile_bytes(),
        imports=", ".join(sorted({f"{dtype}_pointer", f"{dtype}_scratch", "float64_scratch"})),
    )
    return kernel_of(name, start + _BODIES[op](dtype), _tile_bytes())


def _tile_bytes() -> int:
    rows, vectors = tile_of()
    return rows * vectors * VECTOR_BYTES


def _kernel_of(node: Node) -> Kernel:
    return _kernel(node.op.name, node.outputs[0].dtype.name, tile_of())


def _takes(node: Node) -> bool:
    return node.outputs[0].dtype.name in ("float32", "float64")


def _three(sizes: Any, fill: int) -> tuple[SizeLike, ...]:
    return (*(fill,) * (3 - len(sizes)), *sizes)


def _sizes(node: Node) -> tuple[SizeLike, ...]:
    """Return the first of `_NAMES`; the others follow when these are known."""
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
    inputs, outputs, windows = c // groups * kd * kh * kw, o // groups, od * oh * ow
    level = int(sizes[13:15] == (1, 1) and (d, od) == (1, 1) and kd == 1 and ow == w)
    wanted = max(_FEWEST, _CACHED // max(1, inputs))
    rows = max(1, min(od * oh, -(-wanted // max(1, ow))))
    blocks = -(-od * oh // rows) if windows else 0
    together = max(1, min(n, _FEWEST // windows)) if blocks == 1 else 1
    if op == "conv":  # whose work is cut by images
        together = max(1, min(together, n // 4))
    turns = -(-n // together)
    work = n * windows * inputs * o // 4 + n * windows * inputs * 4
    parts = 1
    if op == "conv":
        total = turns * blocks
        chunk = chunk_of(total, work)
    elif op == "conv_input":
        parts = max(1, min(c, -(-8 // max(1, turns)))) if work > 1 << 20 else 1
        total = turns * parts
        chunk = chunk_of(total, work)
    else:
        total = groups * inputs
        chunk = _rows_of_chunk(total, work)
    ld, lo_o = _padded(together * rows * ow), _padded(outputs)
    at_panel = _tile_bytes() + inputs * ld * _WIDEST
    at_totals = at_panel + max(outputs * ld, together * rows * ow * lo_o) * _WIDEST
    kept = {"conv": 0, "conv_input": outputs * tile_of()[0] + _APART, "conv_weight": chunk * lo_o}
    at_sums = at_totals + kept[op] * _WIDEST
    scratch = at_sums + (kept[op] * _WIDEST if op == "conv_weight" else 0)
    known = (*sizes, rows, blocks, parts, level, together, ld, lo_o, at_panel, at_totals, at_sums)
    return Bound(known, total, chunk, scratch, work)


def _padded(count: int) -> int:
    """Return the elements from row to row: tiles may read beyond the end of one."""
    return -(-count // columns_of(4)) * columns_of(4) + _APART


def _rows_of_chunk(total: int, work: int) -> int:
    """Return the rows of weights for one worker: thick enough for a product."""
    parts = max(1, min(MOST // 4, work >> 20, -(-total // 150)))
    if parts == 1 and work > 1 << 20 and total > 12:
        parts = 2
    return max(1, -(-total // parts))


LIBRARIES = {
    op: Library(_takes, _kernel_of, _sizes, functools.partial(_bound, op), compiled_only=True)
    for op in _BODIES
}
