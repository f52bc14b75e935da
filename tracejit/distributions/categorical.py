"""Categorical distribution."""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.size import Size
from tracejit.core.ops import shapes
from tracejit.core.ops.types import int64
from tracejit.distributions import constraints
from tracejit.distributions.exponential_family import ExponentialFamily
from tracejit.distributions.instances import expanded
from tracejit.distributions.utils import given_one, logits_to_probs, probs_to_logits
from tracejit.distributions.validation import lazy_property


class Categorical(ExponentialFamily):
    """Positions 0 .. K-1, by weights along the last dimension of `probs`, or by `logits`.

    `probs` are divided by their sum, `logits` are shifted so that their exponentials sum to 1.

    >>> import tracejit
    >>> d = Categorical(tracejit.tensor([1.0, 3.0]))
    >>> d.probs, d.log_prob(tracejit.tensor(1)), d.sample((5,)).shape
    (tensor([0.2500, 0.7500]), tensor(-0.2877), tracejit.Size([5]))

    ValueError unless exactly one of both is given, of at least one dimension.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        given_one(probs, logits)
        if probs is not None:
            if probs.dim() < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self._given = "probs"
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            if logits.dim() < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self._given = "logits"
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    @lazy_property
    def logits(self) -> Any:
        """log(probs)."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Any:
        """softmax(logits)."""
        return logits_to_probs(self.logits)

    @property
    def _param(self) -> Any:
        return self.probs if self._given == "probs" else self.logits

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        given = {self._given: self._param.expand((*batch_shape, self._num_events))}
        return expanded(self, Categorical, _instance, batch_shape, _given=self._given,
                        _num_events=self._num_events, **given)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def param_shape(self) -> Size:
        """Shape of `probs` or `logits`."""
        return Size(self._param.size())

    def _unknown(self) -> Any:
        like = self._param
        # positions are names and no numbers: there is no mean
        return tracejit.full(self._extended_shape(), tracejit.nan, dtype=like.dtype,
                             device=like.device)

    @property
    def mean(self) -> Any:
        return self._unknown()

    @property
    def mode(self) -> Any:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Any:
        return self._unknown()

    def sample(self, sample_shape: Any = Size()) -> Any:
        sample_shape = Size(sample_shape)
        with no_grad():
            # multinomial takes matrices: the batch becomes one dimension of rows
            rows = self.probs.reshape((shapes.numel(self._batch_shape), self._num_events))
            drawn = tracejit.multinomial(rows, sample_shape.numel(), True)
            return drawn.t().reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value, logits = value.to(int64).unsqueeze(-1), self.logits
        shape = shapes.broadcast(tuple(value.shape)[:-1], tuple(logits.shape)[:-1])
        # gather broadcasts nothing
        logits = logits.expand((*shape, self._num_events))
        return logits.gather(-1, value.expand((*shape, 1))).squeeze(-1)

    def entropy(self) -> Any:
        # the logit of chance 0 is -inf, and -inf * 0 is NaN
        lowest = tracejit.finfo(self._param.dtype).min
        return -(self.logits.clamp(min=lowest) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        values = tracejit.arange(self._num_events, dtype=int64, device=self._param.device)
        values = values.view((-1, *(1,) * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values
