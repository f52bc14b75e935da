"""Invertible transformations of samples, with the logarithms of their derivatives.

In: a tensor. Out: `t(x)`, `t.inv(y)`, and log |det dy/dx|. Called by `TransformedDistribution` and
by users. `cache_size` is accepted as in PyTorch; 1 keeps the last pair, so that `t.inv(t(x)) is x`.
"""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.core.ops import shapes
from tracejit.core.ops.pointwise_record import is_number
from tracejit.distributions import constraints
from tracejit.distributions.composed_transforms import (
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    identity_transform,
)
from tracejit.distributions.joined_transforms import CatTransform, StackTransform
from tracejit.distributions.matrix_transforms import (
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
)
from tracejit.distributions.transform import Transform, _InverseTransform  # noqa: F401
from tracejit.distributions.utils import broadcast_all
from tracejit.nn.functional import pad, softplus

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform",
    "StackTransform", "ExpTransform", "IndependentTransform",
    "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StickBreakingTransform", "TanhTransform", "Transform",
    "identity_transform",
]  # fmt: skip


class ExpTransform(Transform):
    """Transformation y = exp(x) of each element; the result has the same shape.

    >>> import tracejit
    >>> from tracejit.distributions import ExpTransform
    >>> ExpTransform()(tracejit.zeros(2)), ExpTransform().inv(tracejit.ones(2))
    (tensor([1., 1.]), tensor([0., 0.]))
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExpTransform)

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class PowerTransform(Transform):
    """Transformation y = x ** exponent, for positive x; both broadcast.

    >>> import tracejit
    >>> from tracejit.distributions import PowerTransform
    >>> PowerTransform(tracejit.tensor(2.0))(tracejit.tensor([3.0]))
    tensor([9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size: int = 1) -> Any:
        same = self._cache_size == cache_size
        return self if same else PowerTransform(self.exponent, cache_size=cache_size)

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, PowerTransform)
                and self.exponent.eq(other.exponent).all().item())

    def _call(self, x: Any) -> Any:
        return x.pow(self.exponent)

    def _inverse(self, y: Any) -> Any:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return tracejit.Size(shapes.broadcast(tuple(shape), tuple(self.exponent.shape)))

    inverse_shape = forward_shape


def _clipped_sigmoid(x: Any) -> Any:
    """Return the sigmoid, kept inside the open unit interval."""
    limits = tracejit.finfo(x.dtype)
    return x.sigmoid().clamp(min=limits.tiny, max=1.0 - limits.eps)


class SigmoidTransform(Transform):
    """Transformation y = 1 / (1 + exp(-x)) of each element; the result has the same shape.

    >>> import tracejit
    >>> from tracejit.distributions import SigmoidTransform
    >>> SigmoidTransform()(tracejit.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SigmoidTransform)

    def _call(self, x: Any) -> Any:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        limits = tracejit.finfo(y.dtype)
        y = y.clamp(min=limits.tiny, max=1.0 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(Transform):
    """Transformation y = log(1 + exp(x)) of each element; the result has the same shape.

    >>> import tracejit
    >>> from tracejit.distributions import SoftplusTransform
    >>> SoftplusTransform()(tracejit.zeros(2))
    tensor([0.6931, 0.6931])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftplusTransform)

    def _call(self, x: Any) -> Any:
        return softplus(x)

    def _inverse(self, y: Any) -> Any:
        # log(exp(y) - 1), which does not overflow
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x)


class TanhTransform(Transform):
    """Transformation y = tanh(x) of each element; the result has the same shape.

    >>> import tracejit
    >>> from tracejit.distributions import TanhTransform
    >>> TanhTransform()(tracejit.zeros(2))
    tensor([0., 0.])
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TanhTransform)

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return 0.5 * (y.log1p() - (-y).log1p())

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        # log(1 - tanh(x)**2), which stays finite where tanh rounds to 1
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(Transform):
    """Transformation y = |x| of each element, of the same shape; the inverse is y itself.

    >>> import tracejit
    >>> from tracejit.distributions import AbsTransform
    >>> AbsTransform()(tracejit.tensor([-1.0, 2.0]))
    tensor([1., 2.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsTransform)

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class AffineTransform(Transform):
    """Transformation y = loc + scale * x, which broadcast; `event_dim` last dimensions are one
    event.

    >>> import tracejit
    >>> from tracejit.distributions import AffineTransform
    >>> AffineTransform(1.0, 2.0)(tracejit.tensor([3.0]))
    tensor([7.])
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @property
    def domain(self) -> Any:  # type: ignore[override]
        n = self._event_dim
        return constraints.independent(constraints.real, n) if n else constraints.real

    codomain = domain  # type: ignore[assignment]

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, AffineTransform) and _equal(self.loc, other.loc)
                and _equal(self.scale, other.scale))

    @property
    def sign(self) -> Any:
        if is_number(self.scale):
            return 1 if self.scale > 0 else -1 if self.scale < 0 else 0
        return self.scale.sign()

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        shape = tuple(x.shape)
        if is_number(self.scale):
            result = tracejit.full_like(x, math.log(abs(self.scale)))
        else:
            result = self.scale.abs().log()
        if self._event_dim:
            kept = tuple(result.shape)[:result.dim() - self._event_dim]
            result = result.reshape((*kept, -1)).sum(-1)
            shape = shape[:len(shape) - self._event_dim]
        return result.expand(shape)

    def _shape(self, shape: Any) -> Any:
        given = [tuple(getattr(v, "shape", ())) for v in (self.loc, self.scale)]
        return tracejit.Size(shapes.broadcast(tuple(shape), *given))

    forward_shape = inverse_shape = _shape


def _equal(one: Any, other: Any) -> bool:
    if is_number(one) and is_number(other):
        return bool(one == other)
    return bool((one == other).all().item())


class SoftmaxTransform(Transform):
    """Transformation y = softmax(x) over the last dimension, in the same shape; the inverse is
    log(y).

    >>> import tracejit
    >>> from tracejit.distributions import SoftmaxTransform
    >>> SoftmaxTransform()(tracejit.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    def _call(self, x: Any) -> Any:
        return tracejit.softmax(x, -1)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        return _vectors(shape)

    inverse_shape = forward_shape


def _vectors(shape: Any) -> Any:
    if len(shape) < 1:
        raise ValueError("Too few dimensions on input")
    return shape


class StickBreakingTransform(Transform):
    """Transformation of vectors of K-1 numbers to chances of K positions, each a share of what is
    left.

    >>> import tracejit
    >>> from tracejit.distributions import StickBreakingTransform
    >>> StickBreakingTransform()(tracejit.zeros(2))
    tensor([0.3333, 0.3333, 0.3333])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    def _offsets(self, x: Any) -> Any:
        n = x.shape[-1]
        # so that zeros become equal chances
        return n - tracejit.arange(n, dtype=x.dtype, device=x.device)

    def _call(self, x: Any) -> Any:
        z = _clipped_sigmoid(x - self._offsets(x).log())
        left = (1 - z).cumprod(-1)
        return pad(z, [0, 1], value=1) * pad(left, [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        cropped = y[..., :-1]
        # rounding may leave less than 0
        left = (1 - cropped.cumsum(-1)).clamp(min=tracejit.finfo(y.dtype).tiny)
        return cropped.log() - left.log() + self._offsets(cropped).log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - self._offsets(x).log()
        return (-x - softplus(-x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return tuple(_vectors(shape)[:-1]) + (shape[-1] + 1,)

    def inverse_shape(self, shape: Any) -> Any:
        return tuple(_vectors(shape)[:-1]) + (shape[-1] - 1,)
