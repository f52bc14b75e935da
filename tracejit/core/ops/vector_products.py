"""Products of matrices of which one has one row or one column: sums in an order that is fixed.

In: NumPy's matrices of float32 or float64, or stacks of them. Out: their product. Called by the
eager functions of products, and by kernels that run as plain Python. The runtime installs a native
form, with the same bits.

The order depends on the number of terms alone. Terms are cut into blocks of BLOCK. In a block the
term k is added to lane k % LANES, one after another. Then the second half of the lanes is added to
the first, until one is left. The blocks' sums are added in float64, those of PART terms first.
Every product and every sum is rounded by itself: a fused multiply-add would give other bits, and
NumPy has none. So results depend neither on how operands lie nor on the processor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.core.ops.array_sums import PART

LANES = 16
BLOCK = 512
_MOST = 1 << 20  # products that are in memory at once

_native: list[Callable[[Any, Any, tuple], Any]] = []


def install(native: Callable[[Any, Any, tuple], Any]) -> None:
    """Set the function that computes products natively; it returns None for those that it
    leaves."""
    _native[:] = [native]


def is_vector_product(a: Any, b: Any) -> bool:
    """Return True if one of two matrices of floats is a vector."""
    return a.dtype.kind == "f" and (a.shape[-2] == 1 or b.shape[-1] == 1)


def vector_product(a: Any, b: Any, shape: tuple[int, ...] | None = None) -> Any:
    """Return the product of `a` (..., m, k) and `b` (..., k, n), where m or n is 1.

    shape  of the result, if it is another one

    >>> vector_product(np.ones((2, 3)), np.ones((3, 1))).tolist()
    [[3.0], [3.0]]
    """
    if shape is None:
        shape = (*a.shape[:-1], b.shape[-1])
    for run in _native:
        found = run(a, b, shape)
        if found is not None:
            return found
    return by_numpy(a, b).reshape(shape)


def by_numpy(a: Any, b: Any) -> Any:
    """Return the product by NumPy alone."""
    column = b.shape[-1] == 1
    matrix, vector = (a, b[..., 0]) if column else (b.swapaxes(-1, -2), a[..., 0, :])
    result = _sums(matrix, vector)
    return result[..., :, None] if column else result[..., None, :]


def _sums(matrix: Any, vector: Any) -> Any:
    """Return the sums of the products of each row and the vector."""
    kind, terms = matrix.dtype, matrix.shape[-1]
    rows = matrix.shape[:-1]
    step = max(1, _MOST // max(1, matrix.size // max(1, terms) * BLOCK)) * BLOCK
    total = np.zeros(rows, np.float64)
    for start in range(0, terms, PART):
        part = np.zeros(rows, np.float64)
        end = min(start + PART, terms)
        for first in range(start, end, step):
            cut = slice(first, min(first + step, end))
            for one in _blocks(matrix[..., cut] * vector[..., None, cut]):
                part = part + one
        total = total + part
    return total.astype(kind)


def _blocks(products: Any) -> Any:
    """Return the sums of blocks along the last dimension, the blocks first, in float64."""
    rows, count = products.shape[:-1], products.shape[-1]
    blocks = -(-count // BLOCK)
    if count % BLOCK:  # no sum is -0.0, so a further 0.0 changes none
        more = np.zeros((*rows, blocks * BLOCK - count), products.dtype)
        products = np.concatenate((products, more), -1)
    products = products.reshape(*rows, blocks, BLOCK // LANES, LANES)
    lanes = np.zeros((*rows, blocks, LANES), products.dtype)
    for k in range(BLOCK // LANES):
        lanes = lanes + products[..., k, :]
    count = LANES
    while count > 1:
        count //= 2
        lanes = lanes[..., :count] + lanes[..., count:]
    return np.moveaxis(lanes[..., 0], -1, 0).astype(np.float64)
