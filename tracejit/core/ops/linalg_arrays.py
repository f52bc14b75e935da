"""LAPACK on stacks of arrays, where NumPy and CuPy have no function that takes them.

In: the array library, arrays (..., m, n). Out: arrays. Called by the records of `linalg_*.py`.
SciPy is imported when one of these is first called.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np


def for_each(xp: Any, function: Callable[..., Any], *stacks: Any) -> list[Any]:
    """Apply `function` to each of the matrices in stacks (b, m, n); stack its results; b at least
    1."""
    found = [function(*matrices) for matrices in zip(*stacks)]
    return [xp.stack(each) for each in zip(*found)]


def flattened(x: Any) -> Any:
    """Reshape (..., m, n) to (b, m, n)."""
    return x.reshape(prod(x.shape[:-2]), *x.shape[-2:])


def lu(xp: Any, a: Any) -> tuple[Any, Any, Any]:
    """Return factors, pivots and info.

    The factors are L and U in one matrix. Pivots say which rows were exchanged, from 1. Info is the
    number of the first zero on the diagonal, or 0.
    """
    *batch, m, n = a.shape
    k = min(m, n)
    if a.size:
        factors, pivots = for_each(xp, _lu_of(xp, a), flattened(a))
        factors = factors.reshape(a.shape)
        pivots = pivots.reshape(*batch, k).astype(np.int32) + np.int32(1)
    else:
        factors, pivots = a.copy(), xp.zeros((*batch, k), np.int32)
    zero = factors.diagonal(0, -2, -1) == 0
    if not k:
        return factors, pivots, xp.zeros(batch, np.int32)
    info = xp.where(zero.any(-1), zero.argmax(-1) + 1, 0).astype(np.int32)
    return factors, pivots, info


def _lu_of(xp: Any, a: Any) -> Callable[[Any], tuple]:
    if xp is np:
        from scipy.linalg.lapack import get_lapack_funcs

        getrf = get_lapack_funcs("getrf", (a,))
        return lambda x: getrf(x)[:2]
    from cupyx.scipy.linalg import lu_factor

    return lambda x: lu_factor(x, check_finite=False)


def permutation(xp: Any, pivots: Any, rows: int) -> Any:
    """Return for each row of the factors its number in the matrix: int64 (..., rows)."""
    exchanges = pivots.get() if hasattr(pivots, "get") else pivots
    order = np.broadcast_to(np.arange(rows), (*exchanges.shape[:-1], rows)).copy()
    for i in range(exchanges.shape[-1]):
        with_row = exchanges[..., i, None].astype(np.int64) - 1
        found = np.take_along_axis(order, with_row, -1)
        np.put_along_axis(order, with_row, order[..., i, None], -1)
        order[..., i, None] = found
    return xp.asarray(order)


def solve_triangular(xp: Any, a: Any, b: Any, upper: bool, unit: bool) -> Any:
    """Solve a @ x = b; only one triangle of `a` is read; batches broadcast."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, *b.shape[-2:])
    if not prod(shape):
        return xp.zeros(shape, b.dtype)
    a, b = (xp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
    (found,) = for_each(xp, _triangular_of(xp, a, b, upper, unit), flattened(a), flattened(b))
    return found.reshape(shape)


def _triangular_of(xp: Any, a: Any, b: Any, upper: bool, unit: bool) -> Callable[..., tuple]:
    if xp is np:
        from scipy.linalg.blas import get_blas_funcs

        # The triangle is passed transposed: rows here are columns there, and nothing is copied.
        if b.shape[-1] == 1:  # `trsm` would take three times as long
            trsv = get_blas_funcs("trsv", (a, b))
            return lambda x, y: (
                trsv(x.T, y[:, 0], lower=upper, trans=1, diag=unit)[:, None],
            )  # fmt: skip
        trsm = get_blas_funcs("trsm", (a, b))
        return lambda x, y: (trsm(1, x.T, y, lower=upper, trans_a=1, diag=unit),)
    from cupyx.scipy.linalg import solve_triangular as solve

    return lambda x, y: (
        solve(x, y, lower=not upper, unit_diagonal=unit, check_finite=False),
    )  # fmt: skip


def solve_by_factors(xp: Any, factors: Any, pivots: Any, b: Any) -> Any:
    """Solve a @ x = b for the factors of `a`; inf and nan where a pivot is 0."""
    order = permutation(xp, pivots, factors.shape[-1])
    shape = np.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    b = xp.broadcast_to(b, (*shape, *b.shape[-2:]))
    order = xp.broadcast_to(order, (*shape, order.shape[-1]))
    b = xp.take_along_axis(b, order[..., None], -2)
    return solve_triangular(xp, factors, solve_triangular(xp, factors, b, False, True), True, False)


def cholesky(xp: Any, a: Any, upper: bool) -> tuple[Any, Any]:
    """Return the factor, and the order of the first minor that is not positive, or 0."""
    if upper:
        factor, info = cholesky(xp, a.swapaxes(-2, -1).conj(), False)
        return factor.swapaxes(-2, -1).conj(), info
    try:
        factor = xp.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        return _cholesky_each(a)
    if not a.size:
        return factor, xp.zeros(a.shape[:-2], np.int32)
    bad = ~(factor.diagonal(0, -2, -1).real > 0)  # nan, which libraries let pass
    return factor, xp.where(bad.any(-1), bad.argmax(-1) + 1, 0).astype(np.int32)


def _cholesky_each(a: Any) -> tuple[Any, Any]:
    from scipy.linalg.lapack import get_lapack_funcs

    potrf = get_lapack_funcs("potrf", (a,))

    def one(x: Any) -> tuple[Any, Any]:
        factor, info = potrf(x, lower=True, clean=True)
        return factor, np.int32(info)

    factor, info = for_each(np, one, flattened(a))
    return factor.reshape(a.shape), info.reshape(a.shape[:-2])
