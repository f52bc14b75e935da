"""Distributions of |x| where x is distributed evenly around 0.

In: the distribution of x. Out: `Folded`, with the results that follow from it alone. Called by
HalfCauchy and HalfNormal, its subclasses.
"""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.distributions import constraints
from tracejit.distributions.transformed_distribution import TransformedDistribution


class Folded(TransformedDistribution):
    """Distribution of |x|. `base_dist` is the distribution of x."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True  # type: ignore[assignment]

    @property
    def scale(self) -> Any:
        """Scale of the distribution of x."""
        return self.base_dist.scale

    @property
    def mode(self) -> Any:
        return tracejit.zeros_like(self.scale)

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        # half of the base's chance lies below 0
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Any) -> Any:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Any:
        # the sign is lost, one bit
        return self.base_dist.entropy() - math.log(2)
