"""Weibull distribution."""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.distributions import constraints
from tracejit.distributions.exponential import Exponential
from tracejit.distributions.instances import expanded
from tracejit.distributions.transformed_distribution import TransformedDistribution
from tracejit.distributions.transforms import AffineTransform, PowerTransform
from tracejit.distributions.utils import EULER, broadcast_all


class Weibull(TransformedDistribution):
    """Distribution of scale * x ** (1 / concentration) where x is exponential.

    >>> import tracejit
    >>> Weibull(tracejit.tensor(2.0), tracejit.tensor(1.0)).mean
    tensor(2.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(tracejit.ones_like(self.scale), validate_args=validate_args)
        transforms = [PowerTransform(self.concentration_reciprocal),
                      AffineTransform(0, self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        scale, shape = self.scale.expand(batch_shape), self.concentration.expand(batch_shape)
        inverse = shape.reciprocal()
        new = expanded(self, Weibull, _instance, batch_shape, scale=scale, concentration=shape,
                       concentration_reciprocal=inverse)
        return super().expand(batch_shape, new)

    @property
    def mean(self) -> Any:
        return self.scale * tracejit.lgamma(1 + self.concentration_reciprocal).exp()

    @property
    def mode(self) -> Any:
        shape = self.concentration
        return self.scale * ((shape - 1) / shape) ** shape.reciprocal()

    @property
    def variance(self) -> Any:
        inverse = self.concentration_reciprocal
        # moments of x ** k are gamma(1 + k)
        second = tracejit.lgamma(1 + 2 * inverse).exp()
        return self.scale.pow(2) * (second - (2 * tracejit.lgamma(1 + inverse)).exp())

    def entropy(self) -> Any:
        inverse = self.concentration_reciprocal
        return EULER * (1 - inverse) + (self.scale * inverse).log() + 1
