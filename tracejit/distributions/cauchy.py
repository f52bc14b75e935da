"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.distributions import constraints
from tracejit.distributions.distribution import Distribution
from tracejit.distributions.instances import expanded
from tracejit.distributions.utils import broadcast_all, standard_normal
from tracejit.eager.size import Size


class Cauchy(Distribution):
    """The Cauchy (Lorentz) distribution around `loc` of half width `scale`.

    >>> import tracejit
    >>> Cauchy(tracejit.tensor(0.0), 1.0).cdf(tracejit.tensor(1.0))
    tensor(0.7500)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return expanded(self, Cauchy, _instance, batch_shape, loc=self.loc.expand(batch_shape),
                        scale=self.scale.expand(batch_shape))

    def _constant(self, number: float) -> Any:
        return tracejit.full(self._extended_shape(), number, dtype=self.loc.dtype,
                             device=self.loc.device)

    @property
    def mean(self) -> Any:
        return self._constant(tracejit.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return self._constant(tracejit.inf)

    def rsample(self, sample_shape: Any = Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        ratio = standard_normal(shape, self.loc) / standard_normal(shape, self.loc)
        return self.loc + ratio * self.scale

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        away = (value - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - (away**2).log1p()

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Any:
        return math.log(4 * math.pi) + self.scale.log()
