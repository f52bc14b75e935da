"""Kumaraswamy distribution."""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.distributions import constraints
from tracejit.distributions.instances import expanded
from tracejit.distributions.transformed_distribution import TransformedDistribution
from tracejit.distributions.transforms import AffineTransform, PowerTransform
from tracejit.distributions.uniform import Uniform
from tracejit.distributions.utils import EULER, broadcast_all


class Kumaraswamy(TransformedDistribution):
    """Numbers in (0, 1), much like those of `Beta`, with a distribution function in closed form.

    >>> import tracejit
    >>> Kumaraswamy(tracejit.tensor(1.0), tracejit.tensor(1.0)).mean
    tensor(0.5000)
    """

    arg_constraints = {"concentration1": constraints.positive,
                       "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, concentration1: Any, concentration0: Any,
                 validate_args: bool | None = None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        none = tracejit.zeros_like(self.concentration0)
        base = Uniform(none, none + 1, validate_args=validate_args)
        super().__init__(base, [PowerTransform(self.concentration0.reciprocal()),
                                AffineTransform(1.0, -1.0),
                                PowerTransform(self.concentration1.reciprocal())],
                         validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = expanded(self, Kumaraswamy, _instance, batch_shape,
                       concentration1=self.concentration1.expand(batch_shape),
                       concentration0=self.concentration0.expand(batch_shape))
        return super().expand(batch_shape, new)

    def _moment(self, order: int) -> Any:
        a, b = 1 + order / self.concentration1, self.concentration0
        return b * (tracejit.lgamma(a) + tracejit.lgamma(b) - tracejit.lgamma(a + b)).exp()

    @property
    def mean(self) -> Any:
        return self._moment(1)

    @property
    def mode(self) -> Any:
        one, zero = self.concentration1, self.concentration0
        logs = zero.reciprocal() * (-zero).log1p() - (-zero * one).log1p()
        return logs.masked_fill((zero < 1) | (one < 1), tracejit.nan).exp()

    @property
    def variance(self) -> Any:
        return self._moment(2) - self._moment(1).pow(2)

    def entropy(self) -> Any:
        one, zero = self.concentration1, self.concentration0
        # the harmonic number of `zero`
        harmonic = tracejit.digamma(zero + 1) + EULER
        spread = (1 - zero.reciprocal()) + (1 - one.reciprocal()) * harmonic
        return spread - one.log() - zero.log()
