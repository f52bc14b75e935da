"""Dirichlet distribution."""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.core.eager.size import Size
from tracejit.core.ops.gamma_sampling import standard_gamma
from tracejit.distributions import constraints
from tracejit.distributions.exponential_family import ExponentialFamily
from tracejit.distributions.instances import expanded


class Dirichlet(ExponentialFamily):
    """Chances of K positions that sum to 1, for `concentration` of shape (..., K).

    Samples are gamma distributed numbers divided by their sum, and gradients go through both.

    >>> import tracejit
    >>> Dirichlet(tracejit.ones(4)).mean
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Any, validate_args: bool | None = None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        shape = (*batch_shape, *self._event_shape)
        return expanded(self, Dirichlet, _instance, batch_shape,
                        concentration=self.concentration.expand(shape))

    def rsample(self, sample_shape: Any = Size()) -> Any:
        shape, kind = self.concentration, self.concentration.dtype
        # In float64: of small concentrations all gamma distributed numbers may be 0 in float32.
        drawn = standard_gamma(shape.expand(self._extended_shape(sample_shape)).double())
        shares = (drawn / drawn.sum(-1, keepdim=True)).to(kind)
        limits, plain = tracejit.finfo(kind), shares.detach()
        # the bounds change the value and not the gradient
        return shares + (plain.clamp(min=limits.tiny, max=1 - limits.eps / 2) - plain)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        shape = self.concentration
        return (tracejit.xlogy(shape - 1.0, value).sum(-1) + tracejit.lgamma(shape.sum(-1))
                - tracejit.lgamma(shape).sum(-1))

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Any:
        shape = self.concentration
        above = (shape - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        none = (shape < 1).all(-1, keepdim=True)  # then it is at the largest
        places = tracejit.arange(shape.shape[-1], device=shape.device)
        largest = (places == mode.argmax(-1, keepdim=True)).to(shape.dtype)
        return tracejit.where(none, largest, mode)

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Any:
        shape = self.concentration
        k, total = shape.size(-1), shape.sum(-1)
        return (tracejit.lgamma(shape).sum(-1) - tracejit.lgamma(total)
                - (k - total) * tracejit.digamma(total)
                - ((shape - 1.0) * tracejit.digamma(shape)).sum(-1))
