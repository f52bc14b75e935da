"""Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.size import Size
from tracejit.core.ops.losses import binary_cross_entropy_with_logits
from tracejit.distributions import constraints
from tracejit.distributions.chances import Chances
from tracejit.distributions.exponential_family import ExponentialFamily
from tracejit.distributions.instances import expanded
from tracejit.distributions.utils import (
    broadcast_all,
)


class Bernoulli(Chances, ExponentialFamily):
    """1 with probability `probs`, or sigmoid(`logits`), else 0.

    >>> import tracejit
    >>> d = Bernoulli(tracejit.tensor([0.5]))
    >>> d.log_prob(tracejit.ones(1)), d.enumerate_support()
    (tensor([-0.6931]), tensor([[0.],
            [1.]]))
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._keep(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        given = {self._given: self._param.expand(batch_shape)}
        return expanded(self, Bernoulli, _instance, batch_shape, _given=self._given, **given)

    @property
    def param_shape(self) -> Size:
        """Shape of `probs` or `logits`."""
        return Size(self._param.shape)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        probs = self.probs
        mode = (probs >= 0.5).to(probs.dtype)
        # at 0.5 both values are equally likely
        return mode.masked_fill(probs == 0.5, tracejit.nan)

    @property
    def variance(self) -> Any:
        probs = self.probs
        return probs * (1 - probs)

    def sample(self, sample_shape: Any = Size()) -> Any:
        with no_grad():
            return tracejit.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        # by logits: the logarithm of a chance near 0 or 1 would lose precision
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Any:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        like = self._param
        values = tracejit.arange(2, dtype=like.dtype, device=like.device)
        # a dimension of 1 for each of the batch, with which the values broadcast
        values = values.view((-1, *(1,) * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values
