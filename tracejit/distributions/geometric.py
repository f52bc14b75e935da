"""Geometric distribution."""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.size import Size
from tracejit.core.ops.losses import binary_cross_entropy_with_logits
from tracejit.distributions import constraints
from tracejit.distributions.chances import Chances
from tracejit.distributions.instances import expanded
from tracejit.distributions.utils import (
    broadcast_all,
    uniform,
)
from tracejit.distributions.validation import require


class Geometric(Chances):
    """Failures before the first success, 0, 1 ...; each trial succeeds with chance `probs`.

    >>> import tracejit
    >>> Geometric(tracejit.tensor(0.5)).mean
    tensor(1.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._keep(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and self._given == "probs":
            value = self.probs
            # the constraint allows 0, for which the first success never comes
            require(value > 0, lambda: (
                f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"of distribution {self!r} to be positive but found invalid values:\n"
                f"{value[value <= 0]}"))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        given = {self._given: self._param.expand(batch_shape)}
        return expanded(self, Geometric, _instance, batch_shape, _given=self._given, **given)

    @property
    def mean(self) -> Any:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        return tracejit.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = Size()) -> Any:
        with no_grad():
            probs = self.probs
            # uniform numbers include 0, whose logarithm is -inf
            tiny = tracejit.finfo(probs.dtype).tiny
            drawn = uniform(self._extended_shape(sample_shape), probs).clamp(min=tiny)
            return (drawn.log() / (-probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        # a success at once: 0 * log(0) would be NaN
        failing = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-failing).log1p() + probs.log()

    def entropy(self) -> Any:
        probs = self.probs
        return binary_cross_entropy_with_logits(self.logits, probs, reduction="none") / probs
