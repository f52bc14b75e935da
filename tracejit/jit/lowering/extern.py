"""Library products: matrix multiplication as a kernel of the one ABI that calls BLAS by address.

In: extents. Out: the Kernel, and how its work is split. Lowering puts `matmul_kernel(dtype)` and
MATMUL_SIZES into an instruction with `extern="matmul"`. When sizes are bound, the runtime asks
`partition` for split, total and chunk, and adds the routine's address.

A product with one row or one column is made by a kernel of `vector_products` instead.
Operands are row-major matrices a, b, out (float32 or float64), `batch` of them `stride` elements
apart. The split depends on the shape alone, since it may change the last bits of the result.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from tracejit.core.ops.array_sums import PART, in_parts
from tracejit.core.ops.vector_products import by_numpy
from tracejit.jit.lowering.program import Kernel

MATMUL_SIZES = (
    "trans_a", "trans_b", "m", "n", "k", "lda", "ldb", "ldc", "batch", "stride_a", "stride_b",
    "stride_c", "split",
)  # fmt: skip
ROWS, COLUMNS, BATCH = range(3)
_WORTH = 1 << 21  # multiply-adds that are worth a chunk
_THINNEST = 96  # rows or columns of a chunk: thinner ones spend their time packing the other side
_MOST = 16
_TOTALS = 128  # bytes of scratch before the totals of parts

_MATMUL = '''\
"""out = op(a) @ op(b), by {routine}: rows, columns or matrices lo to hi of it."""
import numpy as np
from tracejit.jit.lowering.abi import (
    {imports},
)


def matmul_{dtype}(buffers, operands, sizes, scratch, status, lo, hi):
    a = {dtype}_pointer(buffers, operands[0])
    b = {dtype}_pointer(buffers, operands[1])
    out = {dtype}_pointer(buffers, operands[2])
    trans_a = sizes[0]
    trans_b = sizes[1]
    m = sizes[2]
    n = sizes[3]
    k = sizes[4]
    lda = sizes[5]
    ldb = sizes[6]
    ldc = sizes[7]
    batch = sizes[8]
    stride_a = sizes[9]
    stride_b = sizes[10]
    stride_c = sizes[11]
    split = sizes[12]
    routine = sizes[13]
    words = int64_scratch(scratch, 0)
    numbers = {dtype}_scratch(scratch, 64)
    at_a = address_of(a)
    at_b = address_of(b)
    at_out = address_of(out)
    first = 0
    last = batch
    if split == 0:
        m = hi - lo
        at_out += lo * ldc * {size}
        if trans_a != 0:
            at_a += lo * {size}
        else:
            at_a += lo * lda * {size}
    elif split == 1:
        n = hi - lo
        at_out += lo * {size}
        if trans_b != 0:
            at_b += lo * ldb * {size}
        else:
            at_b += lo * {size}
    else:
        first = lo
        last = hi
    # BLAS sees the transposed problem, column by column: out^T = op(b)^T op(a)^T.
    words[0] = 84 if trans_b != 0 else 78
    words[1] = 84 if trans_a != 0 else 78
    words[2] = n
    words[3] = m
    words[4] = k
    words[5] = max(ldb, max(1, k if trans_b != 0 else n))
    words[6] = max(lda, max(1, m if trans_a != 0 else k))
    words[7] = max(ldc, max(1, n))
    numbers[0] = 1.0
    numbers[1] = 0.0  # of out before: so that k == 0 gives zeros, and NaN there does not matter
    at = address_of(words)
    one = address_of(numbers)
    # A long sum is made of parts, whose results are added in float64.
    step_a = (lda if trans_a != 0 else 1) * {size}
    step_b = (1 if trans_b != 0 else ldb) * {size}
    parts = max(1, (k + {part} - 1) // {part})
    totals = float64_scratch(scratch, {totals})
    if m > 0 and n > 0:
        for matrix in range(first, last):
            begin = (at_out - address_of(out)) // {size} + matrix * stride_c
            for part in range(parts):
                words[4] = min({part}, k - part * {part})
                call_function(
                    routine, at, at + 8, at + 16, at + 24, at + 32, one,
                    at_b + matrix * stride_b * {size} + part * {part} * step_b, at + 40,
                    at_a + matrix * stride_a * {size} + part * {part} * step_a, at + 48,
                    one + {size}, at_out + matrix * stride_c * {size}, at + 56,
                )
                if parts > 1:
                    for i in range(m):
                        for j in range(n):
                            made = np.float64(out[begin + i * ldc + j])
                            if part == 0:
                                totals[i * n + j] = made
                            else:
                                totals[i * n + j] = totals[i * n + j] + made
            if parts > 1:
                for i in range(m):
                    for j in range(n):
                        out[begin + i * ldc + j] = np.{dtype}(totals[i * n + j])
'''


@functools.cache
def matmul_kernel(dtype: str) -> Kernel:
    """Return the kernel for float32 or float64. Raise ValueError for other dtypes, which are host
    calls.

    >>> matmul_kernel("float32").name
    'matmul_float32'
    """
    if dtype not in ("float32", "float64"):
        raise ValueError(f"matmul_kernel: BLAS has no product of {dtype}")
    size, routine = (4, "sgemm") if dtype == "float32" else (8, "dgemm")
    imports = sorted({"address_of", "call_function", f"{dtype}_pointer", f"{dtype}_scratch",
                      "float64_scratch", "int64_scratch"})  # fmt: skip
    source = _MATMUL.format(dtype=dtype, size=size, routine=routine, part=PART, totals=_TOTALS,
                            imports=", ".join(imports))
    digest = hashlib.sha256(source.encode()).hexdigest()[:32]
    return Kernel(f"matmul_{dtype}", source, digest, loops=1, scratch_bytes=_TOTALS)


def dtype_of(kernel: Any) -> str:
    """Return the dtype of a kernel of `matmul_kernel`."""
    return str(kernel.name.removeprefix("matmul_"))


def scratch_of(m: int, n: int, k: int) -> int:
    """Return the bytes that each worker needs for a product of these extents."""
    return _TOTALS + (8 * m * n if k > PART else 0)


class Split(NamedTuple):
    """Cut of a product: number of the extent that is cut, its length, and the length of a chunk."""

    split: int
    total: int
    chunk: int


def partition(m: int, n: int, k: int, batch: int) -> Split:
    """Return the split of a product, by its shape alone: matrices, else rows, or columns if rows
    are few.

    >>> partition(256, 512, 784, 1)
    Split(split=1, total=512, chunk=128)
    """
    parts = min(_MOST, _power_of_two(batch * m * n * k // _WORTH))
    if batch > 1 and batch >= parts:
        return Split(BATCH, batch, -(-batch // parts))
    if batch > 1:
        return Split(BATCH, batch, 1)
    by_rows, by_columns = (min(parts, _power_of_two(extent // _THINNEST)) for extent in (m, n))
    if by_columns > by_rows:
        return Split(COLUMNS, n, _chunk(n, by_columns))
    return Split(ROWS, m, _chunk(m, by_rows))


def _power_of_two(x: int) -> int:
    return 1 << (x.bit_length() - 1) if x > 0 else 1


def _chunk(extent: int, parts: int) -> int:
    """Return the length of a chunk; a multiple of 16 if there are several, so that BLAS's blocks
    stay whole."""
    if parts == 1:
        return max(1, extent)
    return -(-extent // (parts * 16)) * 16


def python_matmul(np: Any, arrays: Sequence[Any], sizes: Sequence[int]) -> None:
    """Compute the whole product by NumPy on the same buffers, for kernels run as plain Python."""
    trans_a, trans_b, m, n, k, lda, ldb, ldc, batch, stride_a, stride_b, stride_c = sizes[:12]
    item = arrays[0].itemsize

    def matrices(array: Any, rows: int, columns: int, ld: int, stride: int) -> Any:
        shape, strides = (batch, rows, columns), (stride * item, ld * item, item)
        return np.lib.stride_tricks.as_strided(array, shape, strides)

    if batch and m and n:
        a = matrices(arrays[0], *((k, m) if trans_a else (m, k)), lda, stride_a)
        b = matrices(arrays[1], *((n, k) if trans_b else (k, n)), ldb, stride_b)
        out = matrices(arrays[2], m, n, ldc, stride_c)
        a, b = a.swapaxes(1, 2) if trans_a else a, b.swapaxes(1, 2) if trans_b else b
        vector = m == 1 or n == 1
        out[...] = by_numpy(a, b) if vector else in_parts(np.matmul, a, b)
