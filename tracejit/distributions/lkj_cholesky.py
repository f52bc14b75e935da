"""LKJ distribution of correlation matrices, by their Cholesky factors."""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.size import Size
from tracejit.core.ops.creation import arange
from tracejit.distributions import constraints
from tracejit.distributions.beta import Beta
from tracejit.distributions.distribution import Distribution
from tracejit.distributions.instances import expanded
from tracejit.distributions.utils import broadcast_all, standard_normal


class LKJCholesky(Distribution):
    """Lower triangular factors of correlation matrices. Their density is a power of the matrix's
    determinant: uniform where `concentration` is 1 (Lewandowski, Kurowicka and Joe 2009).

    >>> import tracejit
    >>> LKJCholesky(3, 0.5).sample((2,)).shape
    tracejit.Size([2, 3, 3])

    ValueError for fewer than two dimensions.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None):
        if dim < 2:
            raise ValueError("Expected dim to be an integer greater than or equal to 2. Found "
                             f"dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return expanded(self, LKJCholesky, _instance, batch_shape, dim=self.dim,
                        concentration=self.concentration.expand(batch_shape))

    def sample(self, sample_shape: Any = Size()) -> Any:
        """Draw each row as a direction and the share of its length off the diagonal."""
        with no_grad():
            like = self.concentration
            half = (arange(self.dim, dtype=like.dtype, device=like.device) - 1).clamp(min=0) / 2
            peak = like.unsqueeze(-1) + 0.5 * (self.dim - 2) - half
            share = Beta(half + 0.5, peak, validate_args=False).sample(sample_shape)
            direction = standard_normal(self._extended_shape(sample_shape), like).tril(-1)
            length = direction.norm(dim=-1, keepdim=True)
            # the first row has nothing below the diagonal
            unit = tracejit.where(length == 0, 0.0, direction / length)
            below = share.unsqueeze(-1).sqrt() * unit
            # rounding may leave less than 0
            left = (1 - below.pow(2).sum(-1)).clamp(min=tracejit.finfo(like.dtype).tiny)
            return below + tracejit.diag_embed(left.sqrt())

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        number = arange(2, self.dim + 1, device=self.concentration.device)
        power = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - number
        height = (power * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log()).sum(-1)
        others = self.dim - 1
        alpha = self.concentration + 0.5 * others
        volume = (0.5 * others * math.log(math.pi) + tracejit.mvlgamma(alpha - 0.5, others)
                  - tracejit.lgamma(alpha) * others)
        return height - volume
