"""Poisson distribution."""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.size import Size
from tracejit.distributions import constraints
from tracejit.distributions.exponential_family import ExponentialFamily
from tracejit.distributions.instances import expanded
from tracejit.distributions.utils import broadcast_all


class Poisson(ExponentialFamily):
    """Numbers of events that come at `rate`.

    >>> import tracejit
    >>> Poisson(tracejit.tensor(1.0)).log_prob(tracejit.tensor(0.0))
    tensor(-1.)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return expanded(self, Poisson, _instance, batch_shape, rate=self.rate.expand(batch_shape))

    @property
    def mean(self) -> Any:
        return self.rate

    @property
    def mode(self) -> Any:
        return self.rate.floor()

    @property
    def variance(self) -> Any:
        return self.rate

    def sample(self, sample_shape: Any = Size()) -> Any:
        with no_grad():
            return tracejit.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return tracejit.xlogy(value, rate) - rate - tracejit.lgamma(value + 1)
