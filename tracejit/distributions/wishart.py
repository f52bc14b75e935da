"""Wishart distribution."""

from __future__ import annotations

import math
import warnings
from typing import Any

import tracejit
from tracejit.core.eager.size import Size
from tracejit.core.ops import shapes
from tracejit.core.ops.creation import arange
from tracejit.core.ops.pointwise_record import is_number
from tracejit.distributions import constraints
from tracejit.distributions.exponential_family import ExponentialFamily
from tracejit.distributions.gamma import Chi2
from tracejit.distributions.instances import expanded
from tracejit.distributions.multivariate_normal import from_precision, half_log_det
from tracejit.distributions.utils import standard_normal
from tracejit.distributions.validation import lazy_property


class Wishart(ExponentialFamily):
    """Sums of outer products of `df` normal vectors. Exactly one matrix (..., n, n) is given: the
    vectors' covariance, its inverse, or its lower triangular Cholesky factor.

    >>> import tracejit
    >>> Wishart(tracejit.tensor(3.0), tracejit.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])

    ValueError for df up to n - 1, AssertionError unless exactly one matrix is given.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None,
                 scale_tril: Any = None, validate_args: bool | None = None):
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix,
                 "scale_tril": scale_tril}
        names = [name for name, matrix in given.items() if matrix is not None]
        if len(names) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or "
                                 "scale_tril may be specified.")
        (self._given,), matrix = names, given[names[0]]
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading "
                             "batch dimensions")
        n = matrix.shape[-1]
        least = df if is_number(df) else df.min()
        if least <= n - 1:
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        if least < n:
            warnings.warn("Low df values detected. Singular samples are highly likely to occur for "
                          "ndim - 1 < df < ndim.", stacklevel=2)
        if is_number(df):
            df = tracejit.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = shapes.broadcast(tuple(matrix.shape)[:-2], tuple(df.shape))
        self.df = df.expand(batch)
        setattr(self, self._given, matrix.expand((*batch, n, n)))
        super().__init__(batch, (n, n), validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, Any]:
        return {"covariance_matrix": constraints.positive_definite,
                "precision_matrix": constraints.positive_definite,
                "scale_tril": constraints.lower_cholesky,
                "df": constraints.greater_than(self.event_shape[-1] - 1)}

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        n = self._event_shape[-1]
        given = {self._given: getattr(self, self._given).expand((*batch_shape, n, n))}
        return expanded(self, Wishart, _instance, batch_shape, _given=self._given,
                        df=self.df.expand(batch_shape), **given)

    @lazy_property
    def scale_tril(self) -> Any:
        """Lower triangular Cholesky factor of the covariance."""
        if self._given == "precision_matrix":
            return from_precision(self.precision_matrix)
        return tracejit.linalg.cholesky(self.covariance_matrix)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """Covariance of the vectors."""
        return self.scale_tril @ self.scale_tril.mT

    @lazy_property
    def precision_matrix(self) -> Any:
        """Inverse of the covariance."""
        return tracejit.cholesky_inverse(self.scale_tril)

    def _wide(self, x: Any) -> Any:
        return x.unsqueeze(-1).unsqueeze(-1)

    @property
    def mean(self) -> Any:
        return self._wide(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Any:
        factor = self.df - self._event_shape[-1] - 1
        return self._wide(factor.masked_fill(factor <= 0, tracejit.nan)) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        matrix = self.covariance_matrix
        diagonal = matrix.diagonal(dim1=-2, dim2=-1)
        return self._wide(self.df) * (
            matrix.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape: Any = Size(), max_try_correction: int | None = None) -> Any:
        """Draw samples by Bartlett's decomposition. `max_try_correction` has no effect: no sample
        is drawn anew."""
        n = self._event_shape[-1]
        factor = self.scale_tril
        # row i of the factor has a chi squared diagonal of df - i degrees
        freedom = self.df.unsqueeze(-1) - arange(n, dtype=factor.dtype, device=factor.device)
        squares = Chi2(freedom, validate_args=False).rsample(sample_shape)
        least = tracejit.finfo(squares.dtype).eps
        noise = standard_normal(self._extended_shape(sample_shape), factor).tril(-1)
        # a diagonal that rounds to 0 would make the sample singular
        noise = noise + tracejit.diag_embed(squares.sqrt().clamp(min=least))
        factor = factor @ noise
        return factor @ factor.mT

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        n, factor = self._event_shape[-1], self.scale_tril
        size = self.df * (n * math.log(2) / 2 + half_log_det(factor))
        # its trace is that of V^-1 @ value
        ratio = tracejit.cholesky_solve(value, factor.expand(value.shape))
        return ((self.df - n - 1) / 2 * tracejit.linalg.slogdet(value).logabsdet
                - ratio.diagonal(dim1=-2, dim2=-1).sum(-1) / 2 - size
                - tracejit.mvlgamma(self.df / 2, n))

    def entropy(self) -> Any:
        n, half = self._event_shape[-1], self.df / 2
        parts = half.unsqueeze(-1) - arange(n, dtype=half.dtype, device=half.device) / 2
        size = n * math.log(2) / 2 + half_log_det(self.scale_tril)
        return ((n + 1) * size + tracejit.mvlgamma(half, n)
                - (self.df - n - 1) / 2 * tracejit.digamma(parts).sum(-1) + n * half)
