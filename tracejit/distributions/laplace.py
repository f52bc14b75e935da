"""Laplace distribution."""

from __future__ import annotations

import math
from typing import Any

from tracejit.core.eager.size import Size
from tracejit.core.ops.random_record import draw, exponential_record
from tracejit.distributions.location_scale import LocationScale


class Laplace(LocationScale):
    """Laplace distribution, with density exp(-|x - loc| / scale) / (2 scale).

    >>> import tracejit
    >>> Laplace(tracejit.tensor(0.0), 1.0).cdf(tracejit.tensor(0.0))
    tensor(0.5000)
    """

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Any:
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape: Any = Size()) -> Any:
        shape, like = tuple(self._extended_shape(sample_shape)), self.loc
        # the difference of two exponential numbers is Laplace distributed
        up, down = (draw(exponential_record, None, shape, like.dtype, like.device)
                    for _ in range(2))
        return self.loc + self.scale * (up - down)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        away = value - self.loc
        # one formula for both sides of loc, without overflow
        return 0.5 - 0.5 * away.sign() * (-away.abs() / self.scale).expm1()

    def icdf(self, value: Any) -> Any:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self) -> Any:
        return 1 + (2 * self.scale).log()
