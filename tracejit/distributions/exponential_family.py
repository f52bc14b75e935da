"""Exponential families: entropy by natural parameters.

In: a subclass that defines `_natural_params`, `_log_normalizer` and `_mean_carrier_measure`. Out:
its entropy. Subclasses whose entropy has a formula of its own need not define them.
"""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.core.eager.modes import enable_grad
from tracejit.distributions.distribution import Distribution


class ExponentialFamily(Distribution):
    """Distributions with density exp(<t(x), theta> - F(theta) + k(x)).

    >>> from tracejit.distributions import Normal
    >>> issubclass(Normal, ExponentialFamily)
    True
    """

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        """theta"""
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        """F(theta)"""
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        """Mean of k(x)."""
        raise NotImplementedError

    def entropy(self) -> Any:
        """Return the entropy by the gradient of F, which is the mean of t(x)."""
        # the formula needs gradients of F also where the caller records none
        with enable_grad():
            natural = [p.detach().requires_grad_() for p in self._natural_params]
            normalizer = self._log_normalizer(*natural)
            means = tracejit.autograd.grad(normalizer.sum(), natural, create_graph=True)
        found = normalizer - self._mean_carrier_measure
        for theta, mean in zip(natural, means):
            found = found - (theta * mean).reshape((*self._batch_shape, -1)).sum(-1)
        return found
