"""Sums of arrays whose error grows with the logarithm of the number of elements.

In: an array of floats and dimensions. Out: their sum. Called by the eager function of `sum` and by
those that add at indices.

NumPy adds in pairs along the last dimension alone, and row after row along any other. Here rows are
first added in blocks, then the blocks' sums.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

ROWS = 128  # added one after another
FEW = 1024  # elements that need no blocks
FEW_TIMES = 8  # rows named for each time that one row is named
NARROW = 8  # columns that are added one by one
PART = 1 << 16  # products that BLAS may add: its error grows with their number
# Dtypes for sums at indices, where a place may repeat any number of times. Halves always add in a
# wider dtype.
_WIDER: dict[Any, Any] = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}
_HALVES = {np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)}


def summed(xp: Any, x: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    """Return `x.sum(dims)`.

    >>> summed(np, np.ones((3, 1000), np.float32), (1,), False).tolist()
    [1000.0, 1000.0, 1000.0]
    """
    short = len(dims) == 1 and x.shape[dims[0]] <= ROWS
    if short or x.size <= FEW or not dims or (xp is np and dims[0] == x.ndim - len(dims)
                                              and x.flags.c_contiguous):
        return xp.sum(x, axis=dims, keepdims=keepdim)
    shape = tuple(n for d, n in enumerate(x.shape) if d not in dims)
    kept = tuple(1 if d in dims else n for d, n in enumerate(x.shape)) if keepdim else shape
    if x.ndim > 2 and x.flags.c_contiguous:
        x, dims = _joined(x, dims)
    for d in reversed(dims):
        x = _along(xp, x, d)
    return x.reshape(kept)


def _joined(x: Any, dims: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """Join neighbouring dimensions that are all reduced, or all kept. Return also the reduced
    ones."""
    sizes: list[int] = []
    kinds: list[bool] = []
    for d, n in enumerate(x.shape):
        reduced = d in dims
        if n == 1:
            continue
        if kinds and kinds[-1] == reduced:
            sizes[-1] *= n
        else:
            sizes.append(n)
            kinds.append(reduced)
    return x.reshape(sizes), tuple(d for d, reduced in enumerate(kinds) if reduced)


def _along(xp: Any, x: Any, d: int) -> Any:
    """Sum along one dimension."""
    n, after = x.shape[d], x.shape[d + 1 :]
    if n <= ROWS or xp is np and not after and x.strides[d]:
        return x.sum(d)
    if xp is np and len(after) == 1 and after[0] <= NARROW:
        return np.stack([x[..., k].sum(d) for k in range(after[0])], -1)
    lead = (slice(None),) * d
    while n > ROWS:
        blocks = -(-n // ROWS)
        rows = ROWS if n % blocks else n // blocks  # blocks of one size, if there are such
        whole = n // rows
        parts = xp.empty((*x.shape[:d], blocks, *after), x.dtype)
        head = x[(*lead, slice(0, whole * rows))].reshape((*x.shape[:d], whole, rows, *after))
        head.sum(d + 1, out=parts[(*lead, slice(0, whole))])
        if whole < blocks:
            x[(*lead, slice(whole * rows, n))].sum(d, out=parts[(*lead, whole)])
        x, n = parts, blocks
    return x.sum(d)


def in_parts(product: Any, a: Any, b: Any) -> Any:
    """Return `product(a, b)` of NumPy's matrices of floats.

    A sum of more than PART products is split into parts, whose results are added in a wider dtype.
    """
    k = a.shape[-1]
    if k <= PART:
        return product(a, b)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    total = wide(0)
    for start in range(0, k, PART):
        cut = slice(start, start + PART)
        total = total + product(a[..., cut], b[..., cut, :]).astype(wide)
    return total.astype(a.dtype)


def add_at(xp: Any, whole: Any, place: Any, values: Any) -> Any:
    """Add `values` to `whole` at `place`, each as often as it is named; may write `whole`."""
    wide: Any = np.float64 if whole.dtype in _HALVES else None
    if values.size > ROWS:
        wide = _WIDER.get(whole.dtype, wide)
    if values.size > ROWS and whole.ndim > 1 and _names_rows(xp, place):
        if _add_rows(whole, place[0].reshape(-1), values, wide or whole.dtype):
            return whole
    if wide is None:
        xp.add.at(whole, place, values)
        return whole
    found = whole.astype(wide)
    xp.add.at(found, place, values.astype(wide))
    return found.astype(whole.dtype)


def _names_rows(xp: Any, place: Any) -> bool:
    """Return True if a place is an array of rows of NumPy's."""
    return (xp is np and type(place) is tuple and type(place[0]) is np.ndarray
            and place[0].dtype.kind == "i"
            and all(type(k) is slice and k == slice(None) for k in place[1:]))


def _add_rows(whole: Any, rows: Any, values: Any, wide: Any) -> bool:
    """Add to rows of a matrix, or of a stack, in the order in which they are named. Return False,
    with nothing done, where one of them is named so often that NumPy's loop is as fast.

    All first values of a row are added at once, then all second ones, and so on.
    """
    rows = np.where(rows < 0, rows + len(whole), rows)
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    starts = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
    counts = np.diff(starts, append=len(rows))
    most = int(counts.max())
    if most * FEW_TIMES > len(rows):
        return False
    named = rows[starts]
    found = whole[named].astype(wide)
    values = values.reshape(len(rows), *whole.shape[1:])
    for k in range(most):
        more = np.flatnonzero(counts > k)
        found[more] += values[order[starts[more] + k]]
    whole[named] = found.astype(whole.dtype)
    return True
