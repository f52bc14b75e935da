"""Von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.size import Size
from tracejit.core.ops.bessel_functions import i0e, i1e
from tracejit.distributions import constraints
from tracejit.distributions.distribution import Distribution
from tracejit.distributions.instances import expanded
from tracejit.distributions.utils import broadcast_all, uniform


class VonMises(Distribution):
    """Angles around `loc`, the nearer the larger `concentration` is.

    How often a sample is drawn anew depends on values: a captured function breaks there.

    >>> import tracejit
    >>> VonMises(tracejit.tensor([0.0]), tracejit.tensor([4.0])).mean
    tensor([0.])
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return expanded(self, VonMises, _instance, batch_shape, loc=self.loc.expand(batch_shape),
                        concentration=self.concentration.expand(batch_shape))

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        """1 minus the length of the mean direction."""
        return 1 - i1e(self.concentration) / i0e(self.concentration)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        height = self.concentration * ((value - self.loc).cos() - 1)
        return height - math.log(2 * math.pi) - i0e(self.concentration).log()

    def sample(self, sample_shape: Any = Size()) -> Any:
        """Draw angles between -pi and pi by rejection from a wrapped Cauchy distribution (Best and
        Fisher 1979)."""
        with no_grad():
            # float64: the formulas cancel for small and for large concentrations
            kappa = self.concentration.double().expand(self._extended_shape(sample_shape))
            tau = 1 + (1 + 4 * kappa**2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
            # the formula cancels for small kappa: a series there
            envelope = tracejit.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))
            angle = tracejit.zeros_like(kappa)
            done = tracejit.zeros_like(kappa, dtype=tracejit.bool)
            while not done.all():
                first, second, side = uniform((3, *kappa.shape), kappa).unbind()
                z = (math.pi * first).cos()
                cosine = (1 + envelope * z) / (envelope + z)
                c = kappa * (envelope - cosine)
                taken = (c * (2 - c) > second) | ((c / second).log() + 1 - c >= 0)
                found = (side - 0.5).sign() * cosine.clamp(-1, 1).acos()
                angle = tracejit.where(taken & ~done, found, angle)
                done = done | taken
            turned = (angle + math.pi + self.loc) % (2 * math.pi) - math.pi
            return turned.to(self.loc.dtype)
