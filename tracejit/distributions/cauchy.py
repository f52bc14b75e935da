"""Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.core.eager.size import Size
from tracejit.distributions.location_scale import LocationScale
from tracejit.distributions.utils import standard_normal


class Cauchy(LocationScale):
    """Cauchy (Lorentz) distribution around `loc` with half width `scale`.

    >>> import tracejit
    >>> Cauchy(tracejit.tensor(0.0), 1.0).cdf(tracejit.tensor(1.0))
    tensor(0.7500)
    """

    def _constant(self, number: float) -> Any:
        # the integrals of the moments diverge
        return tracejit.full(self._extended_shape(), number, dtype=self.loc.dtype,
                             device=self.loc.device)

    @property
    def mean(self) -> Any:
        return self._constant(tracejit.nan)

    @property
    def variance(self) -> Any:
        return self._constant(tracejit.inf)

    def rsample(self, sample_shape: Any = Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        # the ratio of two normal numbers is Cauchy distributed
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
