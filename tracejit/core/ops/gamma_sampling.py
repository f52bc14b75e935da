"""Gamma distributed random numbers, with the derivative by their shape parameter.

In: shape parameters, a `Generator`. Out: samples of scale 1. Called by `tracejit.distributions`.
The host draws them, as a function of (seed, offset) and the parameters. A sample moves with its
parameter as its quantile does: dx/da = -(dF/da) / (dF/dx), F being the distribution function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.core.ops.generators import Generator, state_of
from tracejit.core.ops.random_record import floating
from tracejit.core.ops.record import Op
from tracejit.core.ops.sampling import _on_host, _stream
from tracejit.core.ops.types import TensorType

_LARGE = 200.0  # parameters from which the series has too many terms
_POINTS = 64


def _gamma_array(xp: Any, state: Any, alpha: Any, offset: int) -> Any:
    shape = _on_host(alpha)
    known = shape >= 0
    drawn = _stream(state, offset).standard_gamma(np.where(known, shape, 1))
    drawn = np.asarray(np.where(known, drawn, np.nan)).astype(alpha.dtype)
    kind = np.float32 if alpha.dtype.itemsize == 2 else alpha.dtype
    # As in PyTorch no sample is 0.
    return xp.asarray(np.maximum(drawn, np.finfo(kind).tiny.astype(alpha.dtype)))


def _by_series(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return x sum_n x^n / (a .. a+n) (psi(a+n+1) - log x): for x below or not far above a."""
    from scipy.special import psi

    log_x, term = np.log(x), 1 / a
    digamma = psi(a + 1)
    total = term * (digamma - log_x)
    for n in range(1, int(3 * (x.max(initial=0) + 1)) + 60):
        digamma = digamma + 1 / (a + n)
        term = term * (x / (a + n))
        total += term * (digamma - log_x)
    return x * total


def _by_quadrature(a: np.ndarray, x: np.ndarray, upper: bool) -> np.ndarray:
    """Integrate (log t - psi(a)) p(t) / p(x), p the density, over the tail above x, or below it."""
    from scipy.special import psi

    sign = 1.0 if upper else -1.0
    slope = np.abs(1 - (a - 1) / x)
    width = np.minimum(9 * np.sqrt(2 * x), 60 / np.maximum(slope, 1e-300))
    width = np.maximum(width, 60.0) if upper else np.minimum(width, x)
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    total = np.zeros_like(x)
    level = psi(a)
    for point, weight in zip((points + 1) / 2, weights / 2):
        distance = width * point**2  # denser near x, where most of it is
        t = x + sign * distance
        fall = np.exp((a - 1) * np.log1p(sign * distance / x) - sign * distance)
        total += weight * 2 * point * width * fall * (np.log(t) - level)
    return sign * total


def _derivative(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    result = np.full(x.shape, np.nan)
    known = (a > 0) & (x > 0) & np.isfinite(x)
    series = known & (x < a + 1) & (a < _LARGE)
    below = known & ~series & (x < a)
    above = known & ~series & ~below
    result[series] = _by_series(a[series], x[series])
    result[below] = _by_quadrature(a[below], x[below], upper=False)
    result[above] = _by_quadrature(a[above], x[above], upper=True)
    return result


def _derivative_array(xp: Any, alpha: Any, sample: Any) -> Any:
    a, x = np.broadcast_arrays(_on_host(alpha), _on_host(sample))
    return xp.asarray(_derivative(a, x).astype(alpha.dtype))


def _no_second_order(grad: Any) -> Any:
    raise NotImplementedError("the derivative for '_standard_gamma_grad' is not implemented.")


standard_gamma_grad = Op(
    "standard_gamma_grad", "extern", ("alpha", "sample"), eager=_derivative_array,
    infer=lambda alpha, sample: TensorType(alpha.dtype, tuple(alpha.shape), alpha.device),
    rules={"alpha": _no_second_order, "sample": _no_second_order})

standard_gamma_record = Op(
    "standard_gamma", "extern", ("state", "alpha"), eager=_gamma_array,
    infer=lambda state, alpha, offset: TensorType(alpha.dtype, tuple(alpha.shape), alpha.device),
    rules={"alpha": lambda grad, alpha, out: grad * standard_gamma_grad(alpha, out)})


def standard_gamma(alpha: Any, generator: Generator | None = None) -> Any:
    """Draw from gamma distributions of scale 1, with gradients to their shape parameters.

    >>> import tracejit
    >>> standard_gamma(tracejit.full((3,), 2.0)).shape
    tracejit.Size([3])
    """
    floating(alpha.dtype, "standard_gamma_cpu")
    state, offset = state_of(generator)
    return standard_gamma_record(state, alpha, offset=offset)
