"""Distributions of numbers around a location, at a scale.

In: `loc` and `scale`. Out: `LocationScale`, which keeps both. Called by Normal, Laplace and Cauchy.
"""

from __future__ import annotations

from typing import Any

from tracejit.distributions import constraints
from tracejit.distributions.distribution import Distribution
from tracejit.distributions.instances import expanded
from tracejit.distributions.utils import broadcast_all


class LocationScale(Distribution):
    """Distribution that is highest at `loc` and as wide as `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        # the class right below this one: a subclass of it with a constructor needs its own expand
        ours = next(c for c in type(self).__mro__ if LocationScale in c.__bases__)
        return expanded(self, ours, _instance, batch_shape, loc=self.loc.expand(batch_shape),
                        scale=self.scale.expand(batch_shape))

    @property
    def mode(self) -> Any:
        return self.loc
