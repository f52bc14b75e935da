"""Beta distribution."""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.distributions import constraints
from tracejit.distributions.dirichlet import Dirichlet
from tracejit.distributions.exponential_family import ExponentialFamily
from tracejit.distributions.instances import expanded
from tracejit.distributions.utils import broadcast_all


class Beta(ExponentialFamily):
    """Beta distribution of numbers in [0, 1].

    >>> import tracejit
    >>> Beta(tracejit.tensor(1.0), tracejit.tensor(3.0)).mean
    tensor(0.2500)
    """

    arg_constraints = {"concentration1": constraints.positive,
                       "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any,
                 validate_args: bool | None = None):
        # a Dirichlet of two positions: the chance of the first is the sample
        both = tracejit.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return expanded(self, Beta, _instance, batch_shape,
                        _dirichlet=self._dirichlet.expand(batch_shape))

    @property
    def concentration1(self) -> Any:
        """Weight of 1."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Any:
        """Weight of 0."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Any:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Any:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Any:
        one, zero = self.concentration1, self.concentration0
        total = one + zero
        return one * zero / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(tracejit.stack([value, 1.0 - value], -1))

    def entropy(self) -> Any:
        return self._dirichlet.entropy()
