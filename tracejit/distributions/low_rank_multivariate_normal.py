"""Multivariate normal distribution whose covariance is a low rank matrix plus a diagonal."""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.core.eager.size import Size
from tracejit.core.ops import shapes
from tracejit.distributions import constraints
from tracejit.distributions.distribution import Distribution
from tracejit.distributions.instances import expanded
from tracejit.distributions.multivariate_normal import half_log_det, squared_distance
from tracejit.distributions.utils import standard_normal
from tracejit.distributions.validation import lazy_property


class LowRankMultivariateNormal(Distribution):
    """Normal distribution of vectors with covariance W @ W.T + diag(D). W is `cov_factor` (..., n,
    m), D is `cov_diag` (..., n). Systems of m equations are solved instead of n.

    >>> import tracejit
    >>> d = LowRankMultivariateNormal(tracejit.zeros(2), tracejit.ones(2, 1), tracejit.ones(2))
    >>> d.covariance_matrix
    tensor([[2., 1.],
            [1., 2.]])

    ValueError where shapes do not fit.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any,
                 validate_args: bool | None = None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        n = loc.shape[-1]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading "
                             "batch dimensions")
        if cov_factor.shape[-2] != n:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {n} x m")
        if cov_diag.dim() < 1 or cov_diag.shape[-1] != n:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {(n,)}")
        try:
            batch = shapes.broadcast(tuple(loc.shape)[:-1], tuple(cov_factor.shape)[:-2],
                                     tuple(cov_diag.shape)[:-1])
        except RuntimeError:
            raise ValueError(f"Incompatible batch shapes: loc {loc.shape}, cov_factor "
                             f"{cov_factor.shape}, cov_diag {cov_diag.shape}") from None
        self.loc, self.cov_diag = (x.expand((*batch, n)) for x in (loc, cov_diag))
        self.cov_factor = cov_factor.expand((*batch, *tuple(cov_factor.shape)[-2:]))
        super().__init__(batch, (n,), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        n, m = tuple(self.cov_factor.shape)[-2:]
        return expanded(self, LowRankMultivariateNormal, _instance, batch_shape,
                        loc=self.loc.expand((*batch_shape, n)),
                        cov_factor=self.cov_factor.expand((*batch_shape, n, m)),
                        cov_diag=self.cov_diag.expand((*batch_shape, n)))

    def _over_diagonal(self) -> Any:
        """W.T @ diag(D)^-1"""
        return self.cov_factor.mT / self.cov_diag.unsqueeze(-2)

    def _capacitance(self) -> Any:
        """Return the lower triangular factor of I + W.T @ diag(D)^-1 @ W."""
        product = self._over_diagonal() @ self.cov_factor
        one = tracejit.eye(product.shape[-1], dtype=product.dtype, device=product.device)
        return tracejit.linalg.cholesky(product + one)

    def _log_det(self, capacitance: Any) -> Any:
        # the matrix determinant lemma
        return 2 * half_log_det(capacitance) + self.cov_diag.log().sum(-1)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:
        """Diagonal of the covariance."""
        return self.cov_factor.pow(2).sum(-1) + self.cov_diag

    @lazy_property
    def scale_tril(self) -> Any:
        """Lower triangular Cholesky factor of the covariance."""
        # the diagonal is taken out: I + a positive matrix keeps its factor when it is rounded
        root = self.cov_diag.sqrt().unsqueeze(-1)
        scaled = self.cov_factor / root
        product = scaled @ scaled.mT
        one = tracejit.eye(product.shape[-1], dtype=product.dtype, device=product.device)
        return root * tracejit.linalg.cholesky(product + one)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """W @ W.T + diag(D)"""
        return self.cov_factor @ self.cov_factor.mT + tracejit.diag_embed(self.cov_diag)

    @lazy_property
    def precision_matrix(self) -> Any:
        """Inverse of the covariance, by Woodbury's identity."""
        part = tracejit.linalg.solve_triangular(self._capacitance(), self._over_diagonal(),
                                                upper=False)
        return tracejit.diag_embed(self.cov_diag.reciprocal()) - part.mT @ part

    def rsample(self, sample_shape: Any = Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        low = standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc)
        each = standard_normal(shape, self.loc)
        return (self.loc + (self.cov_factor @ low.unsqueeze(-1)).squeeze(-1)
                + self.cov_diag.sqrt() * each)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        away, capacitance = value - self.loc, self._capacitance()
        within = (self._over_diagonal() @ away.unsqueeze(-1)).squeeze(-1)
        # Woodbury's identity, applied to a vector
        distance = (away.pow(2) / self.cov_diag).sum(-1) - squared_distance(capacitance, within)
        size = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (size + self._log_det(capacitance) + distance)

    def entropy(self) -> Any:
        size = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return 0.5 * (size + self._log_det(self._capacitance()))
