"""Inverse gamma distribution."""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.distributions import constraints
from tracejit.distributions.gamma import Gamma
from tracejit.distributions.instances import expanded
from tracejit.distributions.transformed_distribution import TransformedDistribution
from tracejit.distributions.transforms import PowerTransform


class InverseGamma(TransformedDistribution):
    """Distribution of 1 / x where x is gamma distributed.

    >>> import tracejit
    >>> InverseGamma(tracejit.tensor([3.0]), tracejit.tensor([4.0])).mean
    tensor([2.])
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        inverse = PowerTransform(-tracejit.ones((), dtype=base.rate.dtype,
                                                device=base.rate.device))
        super().__init__(base, inverse, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, expanded(self, InverseGamma, _instance, batch_shape))

    @property
    def concentration(self) -> Any:
        """Shape of the gamma distribution of x."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Any:
        """Inverse scale of the gamma distribution of x."""
        return self.base_dist.rate

    @property
    def mean(self) -> Any:
        return (self.rate / (self.concentration - 1)).masked_fill(
            self.concentration <= 1, tracejit.inf)

    @property
    def mode(self) -> Any:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        shape = self.concentration
        # infinite up to 2, where this formula gives other numbers
        finite = self.rate.square() / ((shape - 1).square() * (shape - 2))
        return finite.masked_fill(shape <= 2, tracejit.inf)

    def entropy(self) -> Any:
        shape = self.concentration
        return (shape + self.rate.log() + tracejit.lgamma(shape)
                - (1 + shape) * tracejit.digamma(shape))
