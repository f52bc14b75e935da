"""Distributions of events that happen or do not, by their chance or its logit.

In: `probs` or `logits`. Out: `Chances`, which keeps the one that was given and computes the other.
Called by Bernoulli, Binomial, Geometric and NegativeBinomial, which are such.
"""

from __future__ import annotations

from typing import Any

from tracejit.distributions.distribution import Distribution
from tracejit.distributions.utils import (
    broadcast_all,
    given_one,
    logits_to_probs,
    probs_to_logits,
)
from tracejit.distributions.validation import lazy_property


class Chances(Distribution):
    """Base class of distributions with `probs` or `logits`."""

    _given: str

    def _keep(self, probs: Any, logits: Any, *others: Any) -> tuple[Any, ...]:
        """Store the given parameter, broadcast with `others`. Return these, broadcast too."""
        given_one(probs, logits)
        self._given = "logits" if probs is None else "probs"
        *rest, param = broadcast_all(*others, logits if probs is None else probs)
        # hides the `lazy_property` of that name, which has no __set__
        setattr(self, self._given, param)
        return tuple(rest)

    @lazy_property
    def logits(self) -> Any:
        """log(probs / (1 - probs))."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        """sigmoid(logits)."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def _param(self) -> Any:
        return self.probs if self._given == "probs" else self.logits
