"""Fisher-Snedecor distribution."""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.core.eager.size import Size
from tracejit.distributions import constraints
from tracejit.distributions.distribution import Distribution
from tracejit.distributions.gamma import Gamma
from tracejit.distributions.instances import expanded
from tracejit.distributions.utils import broadcast_all


class FisherSnedecor(Distribution):
    """Ratio of two chi squared numbers, each divided by its degrees of freedom.

    >>> import tracejit
    >>> FisherSnedecor(tracejit.tensor(1.0), tracejit.tensor(4.0)).mean
    tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return expanded(self, FisherSnedecor, _instance, batch_shape,
                        df1=self.df1.expand(batch_shape), df2=self.df2.expand(batch_shape))

    @property
    def mean(self) -> Any:
        # there is a mean above 2 degrees of freedom, a variance above 4
        df2 = self.df2.masked_fill(self.df2 <= 2, tracejit.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Any:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, tracejit.nan)

    @property
    def variance(self) -> Any:
        df1, df2 = self.df1, self.df2.masked_fill(self.df2 <= 4, tracejit.nan)
        return 2 * df2.pow(2) * (df1 + df2 - 2) / (df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = Size()) -> Any:
        # each is chi squared over twice its degrees of freedom: the ratio cancels the 2
        above, below = (Gamma(df / 2, df, validate_args=False).rsample(sample_shape)
                        for df in (self.df1, self.df2))
        # gamma distributed numbers may round to 0: no division by it, no result of it
        tiny = tracejit.finfo(above.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        one, two, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        size = tracejit.lgamma(one + two) - tracejit.lgamma(one) - tracejit.lgamma(two)
        shape = one * ratio.log() + (one - 1) * value.log()
        return size + shape - (one + two) * (ratio * value).log1p()
