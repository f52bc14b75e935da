"""Log-normal distribution."""

from __future__ import annotations

from typing import Any

from tracejit.distributions import constraints
from tracejit.distributions.instances import expanded
from tracejit.distributions.normal import Normal
from tracejit.distributions.transformed_distribution import TransformedDistribution
from tracejit.distributions.transforms import ExpTransform


class LogNormal(TransformedDistribution):
    """Distribution of exp(x) where x is normal with mean `loc` and deviation `scale`.

    >>> import tracejit
    >>> LogNormal(tracejit.tensor(0.0), 1.0).mean
    tensor(1.6487)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(),
                         validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, expanded(self, LogNormal, _instance, batch_shape))

    @property
    def loc(self) -> Any:
        """Mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Any:
        """Standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Any:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Any:
        squared = self.scale.pow(2)
        # expm1: exp(s) - 1 loses the digits of small s
        return squared.expm1() * (2 * self.loc + squared).exp()

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc
