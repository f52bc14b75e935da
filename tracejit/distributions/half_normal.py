"""Half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.distributions.folded import Folded
from tracejit.distributions.instances import expanded
from tracejit.distributions.normal import Normal
from tracejit.distributions.transforms import AbsTransform


class HalfNormal(Folded):
    """Distribution of |x| where x is normal with mean 0 and deviation `scale`.

    >>> import tracejit
    >>> HalfNormal(tracejit.tensor(1.0)).mean
    tensor(0.7979)
    """

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(),
                         validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, expanded(self, HalfNormal, _instance, batch_shape))

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        return self.scale.pow(2) * (1 - 2 / math.pi)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        # both signs of x give the same |x|
        log_prob = self.base_dist.log_prob(value) + math.log(2)
        return tracejit.where(value >= 0, log_prob, -math.inf)
