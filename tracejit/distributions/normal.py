"""Normal distribution."""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.core.eager.size import Size
from tracejit.distributions.exponential_family import ExponentialFamily
from tracejit.distributions.location_scale import LocationScale
from tracejit.distributions.utils import standard_normal


class Normal(LocationScale, ExponentialFamily):
    """Normal distribution with mean `loc` and standard deviation `scale`.

    >>> import tracejit
    >>> d = Normal(tracejit.tensor([0.0]), tracejit.tensor([1.0]))
    >>> d.log_prob(tracejit.tensor([0.0])), d.cdf(tracejit.tensor([0.0]))
    (tensor([-0.9189]), tensor([0.5000]))
    """

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def stddev(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        return self.stddev.pow(2)

    def rsample(self, sample_shape: Any = Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.loc + standard_normal(shape, self.loc) * self.scale

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        distance = (value - self.loc) ** 2 / (2 * self.scale**2)
        return -distance - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return 0.5 * (1 + tracejit.erf((value - self.loc) / self.scale / math.sqrt(2)))

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * tracejit.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Any:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()
