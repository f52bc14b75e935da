"""Binomial distribution."""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.size import Size
from tracejit.distributions import constraints
from tracejit.distributions.chances import Chances
from tracejit.distributions.instances import expanded


class Binomial(Chances):
    """Successes among `total_count` trials of probability `probs`, or sigmoid(`logits`).

    >>> import tracejit
    >>> Binomial(2, tracejit.tensor(0.5)).log_prob(tracejit.tensor(1.0)).exp()
    tensor(0.5000)
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None):
        (count,) = self._keep(probs, logits, total_count)
        self.total_count = count.type_as(self._param)
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        given = {self._given: self._param.expand(batch_shape)}
        return expanded(self, Binomial, _instance, batch_shape, _given=self._given,
                        total_count=self.total_count.expand(batch_shape), **given)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def param_shape(self) -> Size:
        """Shape of `probs` or `logits`."""
        return Size(self._param.shape)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        # (n + 1) p reaches n + 1 where p is 1
        most = ((self.total_count + 1) * self.probs).floor()
        return tracejit.minimum(most, self.total_count)

    @property
    def variance(self) -> Any:
        probs = self.probs
        return self.total_count * probs * (1 - probs)

    def sample(self, sample_shape: Any = Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return tracejit.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        count, logits = self.total_count, self.logits
        ways = (tracejit.lgamma(count + 1) - tracejit.lgamma(value + 1)
                - tracejit.lgamma(count - value + 1))
        # clamp(min=0), but with the gradient 1/2 at 0, as in PyTorch
        above_zero = (logits.clamp(min=0) + logits - logits.clamp(max=0)) / 2
        # log(1 + exp(l)) as max(l, 0) + log1p(exp(-|l|)), which does not overflow
        return value * logits + ways - count * (above_zero + (-logits.abs()).exp().log1p())

    def _count(self, function: str) -> int:
        count = int(self.total_count.max())
        # one tensor holds the values of the whole batch: there must be equally many
        if not self.total_count.min() == count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{function}`.")
        return count

    def entropy(self) -> Any:
        self._count("entropy")
        # no closed form: a sum over all values
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        like = self._param
        values = tracejit.arange(1 + self._count("enumerate_support"), dtype=like.dtype,
                                 device=like.device)
        values = values.view((-1, *(1,) * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values
