"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.distributions import constraints
from tracejit.distributions.cauchy import Cauchy
from tracejit.distributions.instances import expanded
from tracejit.distributions.transformed_distribution import TransformedDistribution
from tracejit.distributions.transforms import AbsTransform


class HalfCauchy(TransformedDistribution):
    """The distribution of |x| where x is Cauchy distributed around 0.

    >>> import tracejit
    >>> HalfCauchy(tracejit.tensor(1.0)).cdf(tracejit.tensor(1.0))
    tensor(0.5000)
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(),
                         validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, expanded(self, HalfCauchy, _instance, batch_shape))

    @property
    def scale(self) -> Any:
        """The half width of the Cauchy distribution."""
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return tracejit.full(self._extended_shape(), math.inf, dtype=self.scale.dtype,
                             device=self.scale.device)

    @property
    def mode(self) -> Any:
        return tracejit.zeros_like(self.scale)

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value = tracejit.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        log_prob = (math.log(2 / math.pi) - self.scale.log()
                    - (value / self.scale).pow(2).log1p())
        return tracejit.where(value >= 0, log_prob, -math.inf)

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Any) -> Any:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)
