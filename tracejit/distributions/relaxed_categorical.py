"""Continuous relaxations of one-hot samples, and of those of one event."""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.core.eager.size import Size
from tracejit.distributions import constraints
from tracejit.distributions.categorical import Categorical
from tracejit.distributions.distribution import Distribution
from tracejit.distributions.instances import expanded
from tracejit.distributions.transformed_distribution import TransformedDistribution
from tracejit.distributions.transforms import ExpTransform
from tracejit.distributions.utils import broadcast_all, clamp_probs, uniform


class ExpRelaxedCategorical(Distribution):
    """Logarithms of samples of `RelaxedOneHotCategorical`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None):
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        event_shape = self._categorical.param_shape[-1:]
        super().__init__(self._categorical.batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return expanded(self, ExpRelaxedCategorical, _instance, batch_shape,
                        temperature=self.temperature,
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

    def rsample(self, sample_shape: Any = Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        drawn = clamp_probs(uniform(shape, self.logits))
        # Gumbel noise: the largest score is at a position with that position's chance
        scores = (self.logits.expand(shape) - (-drawn.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        n = self._categorical._num_events
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        temperature = self.temperature
        # log and unsqueeze take a tensor
        if not isinstance(temperature, tracejit.Tensor):
            temperature = tracejit.full_like(logits.select(-1, 0), float(temperature))
        size = tracejit.lgamma(tracejit.tensor(float(n))) - temperature.log() * -(n - 1)
        score = logits - value * temperature.unsqueeze(-1)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + size


class RelaxedOneHotCategorical(TransformedDistribution):
    """Vectors of chances near one-hot ones: nearer at lower temperatures.

    >>> import tracejit
    >>> d = RelaxedOneHotCategorical(tracejit.tensor(0.5), tracejit.ones(3))
    >>> d.rsample((2,)).shape
    tracejit.Size([2, 3])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = expanded(self, RelaxedOneHotCategorical, _instance, batch_shape)
        return super().expand(batch_shape, new)

    @property
    def temperature(self) -> Any:
        """Temperature: samples are nearer to one-hot vectors at lower ones."""
        return self.base_dist.temperature

    @property
    def probs(self) -> Any:
        """Chances of the positions."""
        return self.base_dist.probs

    @property
    def logits(self) -> Any:
        """Logarithms of the chances."""
        return self.base_dist.logits
