"""Multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.core.eager.size import Size
from tracejit.core.ops import shapes
from tracejit.distributions import constraints
from tracejit.distributions.distribution import Distribution
from tracejit.distributions.instances import expanded
from tracejit.distributions.utils import standard_normal
from tracejit.distributions.validation import lazy_property


def squared_distance(scale_tril: Any, away: Any) -> Any:
    """|L^-1 x|^2 for lower triangular L (..., n, n) and x (..., n), which broadcast."""
    batch = shapes.broadcast(tuple(scale_tril.shape)[:-2], tuple(away.shape)[:-1])
    n = scale_tril.shape[-1]
    left = scale_tril.expand((*batch, n, n))
    right = away.expand((*batch, n)).unsqueeze(-1)
    solved = tracejit.linalg.solve_triangular(left, right, upper=False)
    return solved.pow(2).sum((-2, -1))


def from_precision(precision: Any) -> Any:
    """Return the lower triangular factor of a covariance matrix, given that matrix's inverse."""
    # flipped both ways, P = U @ U.T with an upper U, and the factor of P^-1 is U^-T
    turned = tracejit.linalg.cholesky(precision.flip((-2, -1)))
    inverse = turned.flip((-2, -1)).mT
    n = precision.shape[-1]
    one = tracejit.eye(n, dtype=precision.dtype, device=precision.device).expand(precision.shape)
    return tracejit.linalg.solve_triangular(inverse, one, upper=False)


def half_log_det(scale_tril: Any) -> Any:
    """log |det L| of a triangular matrix with a positive diagonal."""
    return scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class MultivariateNormal(Distribution):
    """Normal distribution of vectors around `loc` (..., n). Exactly one matrix (..., n, n) is
    given: `covariance_matrix`, its inverse `precision_matrix`, or its lower triangular factor
    `scale_tril`.

    >>> import tracejit
    >>> d = MultivariateNormal(tracejit.zeros(2), tracejit.eye(2))
    >>> d.log_prob(tracejit.zeros(2)), d.sample((3,)).shape
    (tensor(-1.8379), tracejit.Size([3, 2]))

    Raise ValueError for fewer dimensions, and unless exactly one matrix is given.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None,
                 scale_tril: Any = None, validate_args: bool | None = None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix,
                 "scale_tril": scale_tril}
        names = [name for name, matrix in given.items() if matrix is not None]
        if len(names) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril "
                             "may be specified.")
        matrix = given[names[0]]
        if matrix.dim() < 2:
            what = "scale_tril matrix" if names[0] == "scale_tril" else names[0]
            raise ValueError(f"{what} must be at least two-dimensional, with optional leading "
                             "batch dimensions")
        batch = shapes.broadcast(tuple(matrix.shape)[:-2], tuple(loc.shape)[:-1])
        matrix = matrix.expand((*batch, *tuple(matrix.shape)[-2:]))
        self._given = names[0]
        if names[0] == "scale_tril":
            self.scale_tril = matrix
        elif names[0] == "covariance_matrix":
            self.covariance_matrix = matrix
        else:
            self.precision_matrix = matrix
        self.loc = loc.expand((*batch, loc.shape[-1]))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)

        if names[0] == "covariance_matrix":
            # of the matrix as given: one factorization, also for a batch of means
            self._unbroadcasted_scale_tril = tracejit.linalg.cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = (
                scale_tril if scale_tril is not None else from_precision(precision_matrix))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        n = self._event_shape[0]
        matrix = {"scale_tril": self.scale_tril, "covariance_matrix": self.covariance_matrix,
                  "precision_matrix": self.precision_matrix}[self._given]
        given = {self._given: matrix.expand((*batch_shape, n, n))}
        return expanded(self, MultivariateNormal, _instance, batch_shape, _given=self._given,
                        loc=self.loc.expand((*batch_shape, n)),
                        _unbroadcasted_scale_tril=self._unbroadcasted_scale_tril, **given)

    def _wide(self, matrix: Any) -> Any:
        n = self._event_shape[0]
        return matrix.expand((*self._batch_shape, n, n))

    @lazy_property
    def scale_tril(self) -> Any:
        """Lower triangular Cholesky factor of the covariance."""
        return self._wide(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """L times its transpose."""
        return self._wide(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Any:
        """Inverse of the covariance."""
        return self._wide(tracejit.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        spread = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return spread.expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Any = Size()) -> Any:
        drawn = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + (self._unbroadcasted_scale_tril @ drawn.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        distance = squared_distance(self._unbroadcasted_scale_tril, value - self.loc)
        size = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (size + distance) - half_log_det(self._unbroadcasted_scale_tril)

    def entropy(self) -> Any:
        size = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (size + half_log_det(self._unbroadcasted_scale_tril)).expand(self._batch_shape)
