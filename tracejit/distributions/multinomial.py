"""Multinomial distribution."""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.size import Size
from tracejit.core.ops.pointwise_record import is_number
from tracejit.distributions import constraints
from tracejit.distributions.binomial import Binomial
from tracejit.distributions.categorical import Categorical
from tracejit.distributions.distribution import Distribution
from tracejit.distributions.instances import expanded
from tracejit.distributions.utils import broadcast_all


class Multinomial(Distribution):
    """Counts of each position among `total_count` draws of a `Categorical`.

    >>> import tracejit
    >>> d = Multinomial(4, tracejit.tensor([1.0, 0.0]))
    >>> d.sample(), d.mean
    (tensor([4., 0.]), tensor([4., 0.]))

    NotImplementedError unless `total_count` is an int.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None):
        if not is_number(total_count):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self._categorical.probs)
        event_shape = self._categorical.param_shape[-1:]
        super().__init__(self._categorical.batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        categorical = self._categorical.expand(batch_shape)
        return expanded(self, Multinomial, _instance, batch_shape, total_count=self.total_count,
                        _categorical=categorical,
                        _binomial=Binomial(self.total_count, probs=categorical.probs))

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

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
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = Size()) -> Any:
        sample_shape = Size(sample_shape)
        with no_grad():
            drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
            like = self._categorical._param
            counts = tracejit.zeros(self._extended_shape(sample_shape), dtype=like.dtype,
                                    device=like.device)
            return counts.scatter_add(-1, drawn, tracejit.ones_like(drawn, dtype=like.dtype))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        # a count of 0 at chance 0: 0 * -inf would be NaN
        logits = logits.masked_fill((value == 0) & (logits == -tracejit.inf), 0)
        ways = tracejit.lgamma(value.sum(-1) + 1) - tracejit.lgamma(value + 1).sum(-1)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Any:
        count = tracejit.tensor(self.total_count)
        chances = self._categorical.entropy()
        # from 1 on: the term of count 0 is log(0!), which is 0
        inside = self._binomial.enumerate_support(expand=False)[1:]
        weights = self._binomial.log_prob(inside).exp()
        return (self.total_count * chances - tracejit.lgamma(count + 1)
                + (weights * tracejit.lgamma(inside + 1)).sum((0, -1)))
