"""Categorical distributions whose samples are one-hot vectors."""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.core.eager.size import Size
from tracejit.core.ops.embedding import one_hot
from tracejit.distributions import constraints
from tracejit.distributions.categorical import Categorical
from tracejit.distributions.distribution import Distribution
from tracejit.distributions.instances import expanded


class OneHotCategorical(Distribution):
    """`Categorical` with one-hot samples.

    >>> import tracejit
    >>> d = OneHotCategorical(tracejit.tensor([0.0, 1.0]))
    >>> d.sample()
    tensor([0., 1.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._categorical = Categorical(probs, logits)
        event_shape = self._categorical.param_shape[-1:]
        super().__init__(self._categorical.batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return expanded(self, OneHotCategorical, _instance, batch_shape,
                        _categorical=self._categorical.expand(batch_shape))

    @property
    def probs(self) -> Any:
        """Chances of the positions."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """Logarithms of the chances."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """Shape of `probs` or `logits`."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Any:
        return self._categorical.probs

    @property
    def mode(self) -> Any:
        return self._hot(self._categorical.mode)

    @property
    def variance(self) -> Any:
        probs = self._categorical.probs
        return probs * (1 - probs)

    def _hot(self, positions: Any) -> Any:
        return one_hot(positions, self._event_shape[0]).to(self._categorical._param.dtype)

    def sample(self, sample_shape: Any = Size()) -> Any:
        return self._hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        like, n = self._categorical._param, self._event_shape[0]
        values = tracejit.eye(n, dtype=like.dtype, device=like.device)
        values = values.view((n, *(1,) * len(self._batch_shape), n))
        return values.expand((n, *self._batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Distribution `OneHotCategorical` whose samples have the gradient of `probs`: `rsample`
    exists.

    The source is Bengio, Léonard and Courville, "Estimating or propagating gradients through
    stochastic neurons" (2013).

    >>> import tracejit
    >>> from tracejit.distributions import OneHotCategoricalStraightThrough
    >>> OneHotCategoricalStraightThrough(tracejit.tensor([0.0, 1.0])).rsample()
    tensor([0., 1.])
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = Size()) -> Any:
        probs = self._categorical.probs
        # adds 0, with the gradient of probs
        return self.sample(sample_shape) + (probs - probs.detach())
