"""Generalized Pareto distribution."""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.core.eager.size import Size
from tracejit.distributions import constraints
from tracejit.distributions.distribution import Distribution
from tracejit.distributions.instances import expanded
from tracejit.distributions.utils import broadcast_all, uniform


class GeneralizedPareto(Distribution):
    """Distribution of numbers above a high threshold `loc`. A positive `concentration` gives power
    laws, 0 an exponential, and a negative one an upper end.

    >>> import tracejit
    >>> GeneralizedPareto(tracejit.tensor(0.0), 1.0, 0.0).mean
    tensor(1.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive,
                       "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any,
                 validate_args: bool | None = None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        fields = {name: getattr(self, name).expand(batch_shape) for name in self.arg_constraints}
        return expanded(self, GeneralizedPareto, _instance, batch_shape, **fields)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(
            self.loc, tracejit.where(self.concentration < 0, end, tracejit.inf))

    def _power(self) -> tuple[Any, Any]:
        """Return where the distribution is exponential, and the power, 1 in these places."""
        none = tracejit.isclose(self.concentration, tracejit.zeros_like(self.concentration))
        # `where` differentiates both sides: no division by 0 in the other one
        return none, tracejit.where(none, 1.0, self.concentration)

    def _scaled(self, value: Any) -> Any:
        return (value - self.loc) / self.scale

    def rsample(self, sample_shape: Any = Size()) -> Any:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        none, power = self._power()
        z = self._scaled(value)
        slope = 1 / power + tracejit.ones_like(z)
        # at power -1 the logarithm may be -inf, and 0 * -inf is NaN
        fall = tracejit.where(slope == 0, slope, slope * (power * z).log1p())
        return -self.scale.log() - tracejit.where(none, z, fall)

    def log_survival_function(self, value: Any) -> Any:
        """Return the logarithm of the probability of a sample above `value`."""
        if self._validate_args:
            self._validate_sample(value)
        none, power = self._power()
        z = self._scaled(value)
        return tracejit.where(none, -z, -(power * z).log1p() / power)

    def log_cdf(self, value: Any) -> Any:
        """Return the logarithm of `cdf`."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Any) -> Any:
        return self.log_cdf(value).exp()

    def icdf(self, value: Any) -> Any:
        none, power = self._power()
        left = (-value).log1p()
        return tracejit.where(none, self.loc - self.scale * left,
                              self.loc + self.scale / power * (-power * left).expm1())

    def _where(self, limit: float, formula: Any) -> Any:
        """Return a moment that exists below a limit of the concentration, elsewhere NaN."""
        there = self.concentration < limit
        # a concentration at which the formula and its gradient are finite
        safe = tracejit.where(there, self.concentration, limit / 2)
        return tracejit.where(there, formula(safe), tracejit.nan)

    @property
    def mean(self) -> Any:
        return self._where(1, lambda power: self.loc + self.scale / (1 - power))

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return self._where(0.5, lambda power: self.scale**2 / (
            (1 - power) ** 2 * (1 - 2 * power)))

    def entropy(self) -> Any:
        return self.scale.log() + self.concentration + 1
