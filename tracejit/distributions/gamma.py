"""Gamma distribution, and chi squared."""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.core.eager.size import Size
from tracejit.core.ops.gamma_sampling import standard_gamma
from tracejit.distributions import constraints
from tracejit.distributions.exponential_family import ExponentialFamily
from tracejit.distributions.instances import expanded
from tracejit.distributions.utils import broadcast_all


class Gamma(ExponentialFamily):
    """Gamma distribution with shape `concentration` and inverse scale `rate`.

    >>> import tracejit
    >>> Gamma(tracejit.tensor(2.0), tracejit.tensor(4.0)).mean
    tensor(0.5000)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return expanded(self, Gamma, _instance, batch_shape, rate=self.rate.expand(batch_shape),
                        concentration=self.concentration.expand(batch_shape))

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        drawn = standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        tiny = tracejit.finfo(drawn.dtype).tiny
        # the bound changes the value and not the gradient
        return drawn + (drawn.detach().clamp(min=tiny) - drawn.detach())

    def log_prob(self, value: Any) -> Any:
        value = tracejit.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        shape, rate = self.concentration, self.rate
        return (tracejit.xlogy(shape, rate) + tracejit.xlogy(shape - 1, value) - rate * value
                - tracejit.lgamma(shape))

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return tracejit.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Any:
        shape = self.concentration
        return (shape - self.rate.log() + tracejit.lgamma(shape)
                + (1.0 - shape) * tracejit.digamma(shape))


class Chi2(Gamma):
    """Sum of squares of `df` standard normal numbers.

    >>> import tracejit
    >>> Chi2(tracejit.tensor(3.0)).mean
    tensor(3.)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        # Gamma.expand would refuse a class with a constructor of its own
        new = expanded(self, Chi2, _instance, batch_shape)
        return super().expand(batch_shape, new)

    @property
    def df(self) -> Any:
        """Degrees of freedom."""
        return self.concentration * 2
