"""Negative binomial distribution."""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.size import Size
from tracejit.distributions import constraints
from tracejit.distributions.chances import Chances
from tracejit.distributions.gamma import Gamma
from tracejit.distributions.instances import expanded
from tracejit.nn.functional import logsigmoid


class NegativeBinomial(Chances):
    """Successes of probability `probs`, or sigmoid(`logits`), before `total_count` failures.

    >>> import tracejit
    >>> NegativeBinomial(2.0, tracejit.tensor(0.5)).mean
    tensor(2.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None):
        (count,) = self._keep(probs, logits, total_count)
        self.total_count = count.type_as(self._param)
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        given = {self._given: self._param.expand(batch_shape)}
        return expanded(self, NegativeBinomial, _instance, batch_shape, _given=self._given,
                        total_count=self.total_count.expand(batch_shape), **given)

    @property
    def param_shape(self) -> Size:
        """Shape of `probs` or `logits`."""
        return Size(self._param.shape)

    @property
    def mean(self) -> Any:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Any:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Any = Size()) -> Any:
        with no_grad():
            # Poisson numbers of gamma distributed rates
            rates = Gamma(self.total_count, (-self.logits).exp(), validate_args=False)
            return tracejit.poisson(rates.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        count, logits = self.total_count, self.logits
        weights = count * logsigmoid(-logits) + value * logsigmoid(logits)
        ways = (tracejit.lgamma(count + value) - tracejit.lgamma(1.0 + value)
                - tracejit.lgamma(count))
        # no failure to wait for: 0 successes are certain, but lgamma(0) is infinite
        none = (count == 0) & (value == 0)
        return weights + tracejit.where(none, 0.0, ways)
