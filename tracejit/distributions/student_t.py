"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.core.eager.size import Size
from tracejit.distributions import constraints
from tracejit.distributions.distribution import Distribution
from tracejit.distributions.gamma import Chi2
from tracejit.distributions.instances import expanded
from tracejit.distributions.utils import broadcast_all, standard_normal


class StudentT(Distribution):
    """Student's t distribution of `df` degrees of freedom, around `loc`, of scale `scale`.

    >>> import tracejit
    >>> StudentT(tracejit.tensor([3.0])).variance
    tensor([3.])
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real,
                       "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0,
                 validate_args: bool | None = None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return expanded(self, StudentT, _instance, batch_shape, df=self.df.expand(batch_shape),
                        loc=self.loc.expand(batch_shape), scale=self.scale.expand(batch_shape),
                        _chi2=self._chi2.expand(batch_shape))

    @property
    def mean(self) -> Any:
        return self.loc.masked_fill(self.df <= 1, tracejit.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        df = self.df
        finite = self.scale.pow(2) * df / (df - 2)
        return finite.masked_fill(df <= 2, tracejit.inf).masked_fill(df <= 1, tracejit.nan)

    def rsample(self, sample_shape: Any = Size()) -> Any:
        # a normal number over the root of a mean of squares
        normal = standard_normal(self._extended_shape(sample_shape), self.df)
        return self.loc + self.scale * normal * (self._chi2.rsample(sample_shape) / self.df).rsqrt()

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        df, away = self.df, (value - self.loc) / self.scale
        size = (self.scale.log() + 0.5 * df.log() + 0.5 * math.log(math.pi)
                + tracejit.lgamma(0.5 * df) - tracejit.lgamma(0.5 * (df + 1.0)))
        return -0.5 * (df + 1.0) * (away**2.0 / df).log1p() - size

    def entropy(self) -> Any:
        df = self.df
        lbeta = (tracejit.lgamma(0.5 * df) + math.lgamma(0.5)
                 - tracejit.lgamma(0.5 * (df + 1)))
        half = 0.5 * (df + 1)
        return (self.scale.log() + half * (tracejit.digamma(half) - tracejit.digamma(0.5 * df))
                + 0.5 * df.log() + lbeta)
