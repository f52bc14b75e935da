"""Pareto distribution."""

from __future__ import annotations

from typing import Any

from tracejit.distributions import constraints
from tracejit.distributions.exponential import Exponential
from tracejit.distributions.instances import expanded
from tracejit.distributions.transformed_distribution import TransformedDistribution
from tracejit.distributions.transforms import AffineTransform, ExpTransform
from tracejit.distributions.utils import broadcast_all


class Pareto(TransformedDistribution):
    """Numbers above `scale` whose chance falls as a power, `alpha`.

    >>> import tracejit
    >>> Pareto(tracejit.tensor(1.0), tracejit.tensor(2.0)).mean
    tensor(2.)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(0, self.scale)],
                         validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = expanded(self, Pareto, _instance, batch_shape, scale=self.scale.expand(batch_shape),
                       alpha=self.alpha.expand(batch_shape))
        return super().expand(batch_shape, new)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Any:
        alpha = self.alpha.clamp(min=1)  # infinite up to there
        return alpha * self.scale / (alpha - 1)

    @property
    def mode(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        alpha = self.alpha.clamp(min=2)
        return self.scale.pow(2) * alpha / ((alpha - 1).pow(2) * (alpha - 2))

    def entropy(self) -> Any:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
