"""Continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.core.eager.size import Size
from tracejit.core.ops.losses import binary_cross_entropy_with_logits
from tracejit.distributions import constraints
from tracejit.distributions.chances import Chances
from tracejit.distributions.exponential_family import ExponentialFamily
from tracejit.distributions.instances import expanded
from tracejit.distributions.utils import broadcast_all, clamp_probs, logits_to_probs, uniform
from tracejit.distributions.validation import lazy_property


class ContinuousBernoulli(Chances, ExponentialFamily):
    """Numbers x in [0, 1] with a density proportional to probs^x (1 - probs)^(1 - x).

    lims  between these chances, where formulas divide 0 by 0, series are used

    >>> import tracejit
    >>> ContinuousBernoulli(tracejit.tensor([0.5])).mean
    tensor([0.5000])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None,
                 lims: tuple[float, float] = (0.499, 0.501), validate_args: bool | None = None):
        self._keep(probs, logits)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._given == "probs":
            # after the check, which clamped chances would pass
            self.probs = clamp_probs(self.probs)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        given = {self._given: self._param.expand(batch_shape)}
        return expanded(self, ContinuousBernoulli, _instance, batch_shape, _given=self._given,
                        _lims=self._lims, **given)

    @lazy_property
    def probs(self) -> Any:
        """sigmoid(logits)."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    @property
    def param_shape(self) -> Size:
        """Shape of `probs` or `logits`."""
        return Size(self._param.shape)

    def _regular(self) -> tuple[Any, Any]:
        """Return where formulas hold, and chances for which they do."""
        low, high = self._lims
        holds = (self.probs <= low) | (self.probs > high)
        # `where` differentiates both sides: formulas need finite gradients everywhere
        return holds, tracejit.where(holds, self.probs, low)

    def _cont_bern_log_norm(self) -> Any:
        """Return the logarithm of the factor that makes the density's integral 1."""
        holds, chance = self._regular()
        odds = ((-chance).log1p() - chance.log()).abs()
        x = (self.probs - 0.5) ** 2
        # beside 1/2: a Taylor series in probs - 1/2
        return tracejit.where(holds, odds.log() - (1 - 2 * chance).abs().log(),
                              math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Any:
        holds, chance = self._regular()
        x = self.probs - 0.5
        return tracejit.where(
            holds, chance / (2 * chance - 1) + 1 / ((-chance).log1p() - chance.log()),
            0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x**2) * x)

    @property
    def variance(self) -> Any:
        holds, chance = self._regular()
        x = (self.probs - 0.5) ** 2
        spread = chance * (chance - 1) / (1 - 2 * chance) ** 2
        return tracejit.where(holds, spread + 1 / ((-chance).log1p() - chance.log()) ** 2,
                              1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape: Any = Size()) -> Any:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        height = binary_cross_entropy_with_logits(logits, value, reduction="none")
        return self._cont_bern_log_norm() - height

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        holds, chance = self._regular()
        reached = chance**value * (1 - chance) ** (1 - value) + chance - 1
        # beside 1/2 the distribution is uniform but for rounding
        found = tracejit.where(holds, reached / (2 * chance - 1), value)
        return tracejit.where(value <= 0, 0.0, tracejit.where(value >= 1, 1.0, found))

    def icdf(self, value: Any) -> Any:
        holds, chance = self._regular()
        other = (-chance).log1p()
        reached = (-chance + value * (2 * chance - 1)).log1p() - other
        return tracejit.where(holds, reached / (chance.log() - other), value)

    def entropy(self) -> Any:
        no, yes = (-self.probs).log1p(), self.probs.log()
        return self.mean * (no - yes) - self._cont_bern_log_norm() - no
