"""Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.distributions import constraints
from tracejit.distributions.instances import expanded
from tracejit.distributions.transformed_distribution import TransformedDistribution
from tracejit.distributions.transforms import AffineTransform, ExpTransform
from tracejit.distributions.uniform import Uniform
from tracejit.distributions.utils import EULER, broadcast_all


class Gumbel(TransformedDistribution):
    """Distribution of the largest of many numbers, at `loc` with scale `scale`.

    >>> import tracejit
    >>> Gumbel(tracejit.tensor(1.0), tracejit.tensor(2.0)).mean
    tensor(2.1544)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        # within these limits -log(-log(u)) is finite
        limits = tracejit.finfo(self.loc.dtype)
        base = Uniform(tracejit.full_like(self.loc, limits.tiny),
                       tracejit.full_like(self.loc, 1 - limits.eps), validate_args=validate_args)
        transforms = [ExpTransform().inv, AffineTransform(0, -tracejit.ones_like(self.scale)),
                      ExpTransform().inv, AffineTransform(self.loc, -self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = expanded(self, Gumbel, _instance, batch_shape, loc=self.loc.expand(batch_shape),
                       scale=self.scale.expand(batch_shape))
        return super().expand(batch_shape, new)

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def stddev(self) -> Any:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Any:
        return self.stddev.pow(2)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        away = (self.loc - value) / self.scale
        return (away - away.exp()) - self.scale.log()

    def entropy(self) -> Any:
        return self.scale.log() + (1 + EULER)
