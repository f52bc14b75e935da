"""Average pooling and its gradient: the mean of each window, one plane of an image after the other.

In: nodes of average pooling in float32 or float64, over windows of one size, or over as many
windows as are asked for. Out: library kernels. One to three spatial dimensions are three.
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
    "counting",
)  # fmt: skip
_COUNTING = {"nothing": 0, "all": 1, "inside": 2, "adaptive": 3}

_TEXT = '''\
"""{what}"""
import numpy as np
from tracejit.jit.lowering.abi import {dtype}_pointer


def {name}(buffers, operands, sizes, scratch, status, lo, hi):
    x = {dtype}_pointer(buffers, operands[0])
    out = {dtype}_pointer(buffers, operands[1])
{fetches}
    for plane in range(lo, hi):
{before}
        for z in range(od):
{depth}
            for y in range(oh):
{height}
                for u in range(ow):
{width}
                    size = np.{dtype}(count_d * count_h * count_w)
                    to = ((plane * od + z) * oh + y) * ow + u
{body}
'''
# Where window number `{at}` begins and ends along one dimension, and what its sum is divided by.
_BOUNDS = '''\
from_{n} = {at} * s{n} - p{n}
to_{n} = min(from_{n} + k{n}, {n} + p{n})
count_{n} = to_{n} - from_{n}
from_{n} = max(from_{n}, 0)
to_{n} = max(from_{n}, min(to_{n}, {n}))
if counting == 3:
    from_{n} = {at} * {n} // o{n}
    to_{n} = (({at} + 1) * {n} + o{n} - 1) // o{n}
if counting >= 2:
    count_{n} = max(1, to_{n} - from_{n})
if counting == 0:
    count_{n} = 1
'''
# A window may be a whole image: float32 is added in float64.
_MEAN = '''\
total = np.float64(0.0)
for i in range(from_d, to_d):
    for j in range(from_h, to_h):
        line = ((plane * d + i) * h + j) * w
        for k in range(from_w, to_w):
            total = total + np.float64(x[line + k])
out[to] = np.{dtype}(total / np.float64(size))
'''
_SPREAD = '''\
part = x[to] / size
for i in range(from_d, to_d):
    for j in range(from_h, to_h):
        line = ((plane * d + i) * h + j) * w
        for k in range(from_w, to_w):
            out[line + k] += part
'''
_ZEROS = '''\
for t in range(plane * d * h * w, (plane + 1) * d * h * w):
    out[t] = 0.0
'''


@functools.cache
def _kernel(backward: bool, dtype: str) -> Kernel:
    what = "What each element gets of its windows' means." if backward else "Means of windows."
    name = f"avg_pool{'_backward' if backward else ''}_{dtype}"
    text = _TEXT.format(
        what=what, dtype=dtype, name=name,
        fetches="\n".join(f"    {n} = sizes[{k}]" for k, n in enumerate(_NAMES)),
        before=indented(_ZEROS, 2) if backward else "        pass",
        depth=indented(_BOUNDS.format(n="d", at="z"), 3),
        height=indented(_BOUNDS.format(n="h", at="y"), 4),
        width=indented(_BOUNDS.format(n="w", at="u"), 5),
        body=indented(_SPREAD if backward else _MEAN.format(dtype=dtype), 5),
    )  # fmt: skip
    return kernel_of(name, text)


def _backward(node: Node) -> bool:
    return node.op.name.endswith("_backward")


def _kernel_of(node: Node) -> Kernel:
    return _kernel(_backward(node), node.outputs[0].dtype.name)


def _takes(node: Node) -> bool:
    return node.outputs[0].dtype.name in ("float32", "float64")


def _three(sizes: tuple, fill: int) -> tuple[SizeLike, ...]:
    return (*(fill,) * (3 - len(sizes)), *sizes)


def _sizes(node: Node) -> tuple[SizeLike, ...]:
    """Return the sizes `_NAMES`, and the number of planes."""
    given, how = node.attributes, node.attributes["how"]
    shape = node.inputs[0].shape
    sizes, out = tuple(shape[2:]), tuple(given["sizes" if _backward(node) else "out"])
    if _backward(node):
        sizes, out = out, sizes
    windows = [each[1:4] if each[0] == "windows" else (1, 1, 0) for each in how]
    kernel, stride, padding = (tuple(each[k] for each in windows) for k in range(3))
    counting = _COUNTING[how[0][4] if how[0][0] == "windows" else "adaptive"]
    return (
        *_three(sizes, 1), *_three(out, 1), *_three(kernel, 1), *_three(stride, 1),
        *_three(padding, 0), counting, shape[0] * shape[1],
    )  # fmt: skip


def _bound(sizes: tuple[int, ...]) -> Bound:
    *known, planes = sizes
    work = planes * 8 * (product_of(known[:3]) + 4 * product_of(known[3:6]))
    return Bound(tuple(known), planes, chunk_of(planes, work), work=work)


LIBRARIES = {
    f"{kind}avg_pool{n}d{way}": Library(_takes, _kernel_of, _sizes, _bound)
    for kind in ("", "adaptive_")
    for n in (1, 2, 3)
    for way in ("", "_backward")
}
