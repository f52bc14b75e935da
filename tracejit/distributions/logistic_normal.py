"""Logistic normal distribution."""

from __future__ import annotations

from typing import Any

from tracejit.distributions import constraints
from tracejit.distributions.instances import expanded
from tracejit.distributions.normal import Normal
from tracejit.distributions.transformed_distribution import TransformedDistribution
from tracejit.distributions.transforms import StickBreakingTransform


class LogisticNormal(TransformedDistribution):
    """Vectors of chances made of normal vectors by breaking a stick.

    >>> import tracejit
    >>> LogisticNormal(tracejit.zeros(2), tracejit.ones(2)).sample().shape
    tracejit.Size([3])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        base = Normal(loc, scale, validate_args=validate_args)
        # breaking a stick takes vectors
        base = base if base.batch_shape else base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = expanded(self, LogisticNormal, _instance, batch_shape)
        return super().expand(batch_shape, new)

    @property
    def loc(self) -> Any:
        """Mean of the normal vectors."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Any:
        """Standard deviation of the normal vectors."""
        return self.base_dist.base_dist.scale
