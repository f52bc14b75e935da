"""Transformations to triangular and positive definite matrices, and by distribution functions.

In: a tensor. Out: matrices, or chances. See `transforms.py`, which has their names too.
"""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.distributions import constraints
from tracejit.distributions.transform import Transform
from tracejit.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from tracejit.nn.functional import pad, softplus


class LowerCholeskyTransform(Transform):
    """Transformation of matrices (*, n, n) to lower triangular ones with a positive diagonal: its
    exp.

    >>> import tracejit
    >>> from tracejit.distributions import LowerCholeskyTransform
    >>> LowerCholeskyTransform()(tracejit.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Transformation of matrices (*, n, n) to positive definite ones: L @ L.T of
    `LowerCholeskyTransform`.

    >>> import tracejit
    >>> from tracejit.distributions import PositiveDefiniteTransform
    >>> PositiveDefiniteTransform()(tracejit.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(tracejit.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """Transformation of vectors of n (n - 1) / 2 numbers to Cholesky factors (n, n) of correlation
    matrices. Each row is a stick of length 1, broken by squares.

    ValueError for inputs without dimensions.

    >>> import tracejit
    >>> from tracejit.distributions import CorrCholeskyTransform
    >>> CorrCholeskyTransform()(tracejit.zeros(3))
    tensor([[1., 0., 0.],
            [0., 1., 0.],
            [0., 0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        eps = tracejit.finfo(x.dtype).eps
        # tanh rounds to 1 for large x, which would leave nothing of the stick
        below = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        # the length of the stick that earlier columns leave
        left = (1 - below**2).sqrt().cumprod(-1)
        one = tracejit.eye(below.shape[-1], dtype=x.dtype, device=x.device)
        return (below + one) * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        left = pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1)
        share = tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(left, -1).sqrt()
        # atanh
        return (share.log1p() - (-share).log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), -2)
        # -log(1 - tanh(x)**2) / 2, which does not overflow
        slopes = x + softplus(-2 * x) - math.log(2.0)
        return 0.5 * left.log().sum(-1) - 2 * slopes.sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        n = _side(shape[-1])
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


def _side(count: int) -> int:
    """Return n for a triangle of n (n - 1) / 2 elements."""
    # the root of n (n - 1) / 2 = count
    n = round((0.25 + 2 * int(count)) ** 0.5 + 0.5)
    if n * (n - 1) // 2 != count:
        raise ValueError("Input is not a flattened lower-diagonal number")
    return n


class CumulativeDistributionTransform(Transform):
    """Transformation of values to the probability of a smaller one, by a distribution's `cdf`; same
    shape.

    >>> import tracejit
    >>> from tracejit.distributions import CumulativeDistributionTransform, Normal
    >>> CumulativeDistributionTransform(Normal(0.0, 1.0))(tracejit.zeros(2))
    tensor([0.5000, 0.5000])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Any, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return self.distribution.support

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size)
