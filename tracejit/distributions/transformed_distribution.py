"""Distributions of transformed samples."""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.size import Size
from tracejit.distributions import constraints
from tracejit.distributions.distribution import Distribution
from tracejit.distributions.independent import Independent
from tracejit.distributions.instances import expanded
from tracejit.distributions.transforms import ComposeTransform, Transform
from tracejit.distributions.utils import sum_rightmost


class TransformedDistribution(Distribution):
    """Distribution of samples of `base_distribution` after all `transforms`, in their order.

    >>> import tracejit
    >>> from tracejit.distributions import ExpTransform, Normal
    >>> d = TransformedDistribution(Normal(tracejit.tensor(0.0), 1.0), [ExpTransform()])
    >>> d.log_prob(tracejit.tensor(1.0))
    tensor(-0.9189)

    ValueError for what is no transformation, and for a base of too few dimensions.
    """

    arg_constraints: dict[str, Any] = {}

    def __init__(self, base_distribution: Any, transforms: Any, validate_args: bool | None = None):
        self.transforms = _listed(transforms)
        base_shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        base_dims = len(base_distribution.event_shape)
        transform = ComposeTransform(self.transforms)
        if len(base_shape) < transform.domain.event_dim:
            raise ValueError("base_distribution needs to have shape with size at least "
                             f"{transform.domain.event_dim}, but got {Size(base_shape)}.")
        forward_shape = transform.forward_shape(base_shape)
        needed = transform.inverse_shape(forward_shape)
        # parameters of transformations may have a larger batch than the base
        if tuple(base_shape) != tuple(needed):
            base_distribution = base_distribution.expand(needed[:len(needed) - base_dims])
        # batch dimensions of the base that lie within an event of the transformations
        more = transform.domain.event_dim - base_dims
        if more > 0:
            base_distribution = Independent(base_distribution, more)
        self.base_dist = base_distribution
        change = transform.codomain.event_dim - transform.domain.event_dim
        dims = transform.codomain.event_dim + max(base_dims - transform.domain.event_dim, 0)
        self._dims_added = change
        cut = len(forward_shape) - dims
        super().__init__(forward_shape[:cut], forward_shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        shape = (*batch_shape, *self.event_shape)
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        inner = len(shape) - len(self.base_dist.event_shape)
        return expanded(self, TransformedDistribution, _instance, batch_shape,
                        base_dist=self.base_dist.expand(tuple(shape)[:inner]),
                        transforms=self.transforms, _dims_added=self._dims_added)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return bool(self.base_dist.has_rsample)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    def sample(self, sample_shape: Any = Size()) -> Any:
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = Size()) -> Any:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def _transformed(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        dims, total, y = len(self.event_shape), None, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            # a transformation of smaller events gives several terms for one event
            term = sum_rightmost(transform.log_abs_det_jacobian(x, y),
                                 dims - transform.domain.event_dim)
            total = -term if total is None else total - term
            y = x
        density = sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))
        return density if total is None else density + total

    def _upwards(self, value: Any) -> Any:
        """Turn a probability p of the base into 1 - p where the transformations decrease."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._upwards(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        return self._transformed(self.base_dist.icdf(self._upwards(value)))


def _listed(transforms: Any) -> list[Transform]:
    if isinstance(transforms, Transform):
        return [transforms]
    if not isinstance(transforms, list):
        raise ValueError("transforms must be a Transform or list, but was "
                         f"{transforms}")
    if not all(isinstance(t, Transform) for t in transforms):
        raise ValueError("transforms must be a Transform or a list of Transforms")
    return transforms
