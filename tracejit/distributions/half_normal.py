"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.distributions import constraints
from tracejit.distributions.instances import expanded
from tracejit.distributions.normal import Normal
from tracejit.distributions.transformed_distribution import TransformedDistribution
from tracejit.distributions.transforms import AbsTransform


class HalfNormal(TransformedDistribution):
    """The distribution of |x| where x is normal of mean 0 and deviation `scale`.

    >>> import tracejit
    >>> HalfNormal(tracejit.tensor(1.0)).mean
    tensor(0.7979)
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(),
                         validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, expanded(self, HalfNormal, _instance, batch_shape))

    @property
    def scale(self) -> Any:
        """The standard deviation of the normal distribution."""
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Any:
        return tracejit.zeros_like(self.scale)

    @property
    def variance(self) -> Any:
        return self.scale.pow(2) * (1 - 2 / math.pi)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        log_prob = self.base_dist.log_prob(value) + math.log(2)
        return tracejit.where(value >= 0, log_prob, -math.inf)

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Any) -> Any:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)
