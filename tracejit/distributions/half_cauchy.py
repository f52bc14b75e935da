"""Half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.distributions.cauchy import Cauchy
from tracejit.distributions.folded import Folded
from tracejit.distributions.instances import expanded
from tracejit.distributions.transforms import AbsTransform


class HalfCauchy(Folded):
    """Distribution of |x| where x is Cauchy distributed around 0.

    >>> import tracejit
    >>> HalfCauchy(tracejit.tensor(1.0)).cdf(tracejit.tensor(1.0))
    tensor(0.5000)
    """

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(),
                         validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, expanded(self, HalfCauchy, _instance, batch_shape))

    @property
    def mean(self) -> Any:
        return tracejit.full(self._extended_shape(), math.inf, dtype=self.scale.dtype,
                             device=self.scale.device)

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value = tracejit.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        # the density is there for negative values too, so cut below
        log_prob = (math.log(2 / math.pi) - self.scale.log()
                    - (value / self.scale).pow(2).log1p())
        return tracejit.where(value >= 0, log_prob, -math.inf)
