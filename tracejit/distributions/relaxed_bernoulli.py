"""Continuous relaxations of events that happen or do not."""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.size import Size
from tracejit.distributions import constraints
from tracejit.distributions.chances import Chances
from tracejit.distributions.instances import expanded
from tracejit.distributions.transformed_distribution import TransformedDistribution
from tracejit.distributions.transforms import SigmoidTransform
from tracejit.distributions.utils import broadcast_all, clamp_probs, uniform


class LogitRelaxedBernoulli(Chances):
    """Logits of samples of `RelaxedBernoulli`."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None):
        self.temperature = temperature
        self._keep(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        given = {self._given: self._param.expand(batch_shape)}
        return expanded(self, LogitRelaxedBernoulli, _instance, batch_shape, _given=self._given,
                        temperature=self.temperature, **given)

    @property
    def param_shape(self) -> Size:
        """Shape of `probs` or `logits`."""
        return Size(self._param.shape)

    def rsample(self, sample_shape: Any = Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        chance = clamp_probs(self.probs.expand(shape))
        # logits of 0 and 1 are infinite
        drawn = clamp_probs(uniform(shape, chance))
        odds = drawn.log() - (-drawn).log1p() + chance.log() - (-chance).log1p()
        return odds / self.temperature

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        away = logits - value * self.temperature
        return self.temperature.log() + away - 2 * away.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Numbers in (0, 1) near 0 and 1: nearer at lower temperatures.

    >>> import tracejit
    >>> RelaxedBernoulli(tracejit.tensor(0.5), tracejit.tensor([0.2])).rsample((2,)).shape
    tracejit.Size([2, 1])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None):
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(),
                         validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = expanded(self, RelaxedBernoulli, _instance, batch_shape)
        return super().expand(batch_shape, new)

    @property
    def temperature(self) -> Any:
        """Temperature: samples are nearer to 0 and 1 at lower ones."""
        return self.base_dist.temperature

    @property
    def probs(self) -> Any:
        """Chance of a sample near 1."""
        return self.base_dist.probs

    @property
    def logits(self) -> Any:
        """Logit of that chance."""
        return self.base_dist.logits
