"""Uniform distribution."""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.core.eager.size import Size
from tracejit.distributions import constraints
from tracejit.distributions.distribution import Distribution
from tracejit.distributions.instances import expanded
from tracejit.distributions.utils import broadcast_all, uniform


class Uniform(Distribution):
    """Uniform distribution on [low, high).

    >>> import tracejit
    >>> d = Uniform(tracejit.tensor(0.0), tracejit.tensor(2.0))
    >>> d.mean, d.cdf(tracejit.tensor(0.5))
    (tensor(1.), tensor(0.2500))
    """

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None):
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, Any]:
        return {"low": constraints.less_than(self.high),
                "high": constraints.greater_than(self.low)}

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return expanded(self, Uniform, _instance, batch_shape, low=self.low.expand(batch_shape),
                        high=self.high.expand(batch_shape))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Any:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Any:
        # no value is more likely than others
        return tracejit.nan * self.high

    @property
    def stddev(self) -> Any:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Any:
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape: Any = Size()) -> Any:
        drawn = uniform(self._extended_shape(sample_shape), self.low)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        inside = ((self.low <= value) & (self.high > value)).to(self.low.dtype)
        return inside.log() - (self.high - self.low).log()

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        return (self.high - self.low).log()
