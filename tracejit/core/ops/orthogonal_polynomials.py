"""Orthogonal polynomials: Chebyshev's of four kinds, Hermite's of two, Laguerre's and Legendre's.

Chebyshev's come plain and shifted to 0 .. 1.

In: places and degrees: tensors, or a tensor and a number. A fraction of a degree is cut off; below
degree 0 the value is 0. Out: a tensor of their broadcast shape, without gradients, as in PyTorch.
Programs call the array library here, which computes in float64. Called by users, under the names of
`tracejit.special`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.core.ops.pointwise_library import library, only
from tracejit.core.ops.pointwise_record import promote_float
from tracejit.core.ops.record import Op

Step = Callable[[Any, int, Any, Any], Any]  # (x, degree, one degree less, two less) -> values


def _values(xp: Any, x: Any, n: Any, first: Callable[[Any], Any], step: Step) -> Any:
    """Compute the polynomial of degree n at each x, by the recurrence from a degree to the next."""
    kind = next(a.dtype for a in (x, n) if hasattr(a, "dtype"))
    x, n = xp.broadcast_arrays(xp.asarray(x, np.float64), xp.asarray(n, np.float64))
    # No degree is reached where n is infinite or nan: the value is 0.
    n = xp.trunc(xp.where(xp.isfinite(n), n, -1.0))
    before, now = xp.ones_like(x), first(x)
    result = xp.where(n == 1, now, xp.where(n == 0, before, 0.0))
    for degree in range(2, int(n.max() if n.size else 0) + 1):
        before, now = now, step(x, degree, now, before)
        result = xp.where(n == degree, now, result)
    return xp.asarray(result).astype(kind)


def _polynomial(name: str, first: Callable[[Any], Any], step: Step) -> Op:
    refused = only(lambda kind: kind.itemsize < 4, f"{name}_cpu", promote_float)
    return library(name, lambda xp, x, n: _values(xp, x, n, first, step), refused,
                   ("input", "n"), methods=())


def _chebyshev(kind: str, first: Callable[[Any], Any]) -> tuple[Op, Op]:
    """Make the polynomials over -1 .. 1, and over 0 .. 1."""
    return (
        _polynomial(f"chebyshev_polynomial_{kind}", first,
                    lambda x, n, now, before: 2 * x * now - before),
        _polynomial(f"shifted_chebyshev_polynomial_{kind}", lambda x: first(2 * x - 1),
                    lambda x, n, now, before: 2 * (2 * x - 1) * now - before),
    )  # fmt: skip


chebyshev_polynomial_t, shifted_chebyshev_polynomial_t = _chebyshev("t", lambda x: x)
chebyshev_polynomial_u, shifted_chebyshev_polynomial_u = _chebyshev("u", lambda x: 2 * x)
chebyshev_polynomial_v, shifted_chebyshev_polynomial_v = _chebyshev("v", lambda x: 2 * x - 1)
chebyshev_polynomial_w, shifted_chebyshev_polynomial_w = _chebyshev("w", lambda x: 2 * x + 1)

hermite_polynomial_h = _polynomial(
    "hermite_polynomial_h", lambda x: 2 * x,
    lambda x, n, now, before: 2 * (x * now - (n - 1) * before))

hermite_polynomial_he = _polynomial(
    "hermite_polynomial_he", lambda x: x, lambda x, n, now, before: x * now - (n - 1) * before)

laguerre_polynomial_l = _polynomial(
    "laguerre_polynomial_l", lambda x: 1 - x,
    lambda x, n, now, before: ((2 * n - 1 - x) * now - (n - 1) * before) / n)

legendre_polynomial_p = _polynomial(
    "legendre_polynomial_p", lambda x: x,
    lambda x, n, now, before: ((2 * n - 1) * x * now - (n - 1) * before) / n)
