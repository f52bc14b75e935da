"""`Transform`: the common part of all transformations of samples, and their inverses.

In: a subclass that computes y of x, x of y, and log |det dy/dx|. Out: `t(x)` and `t.inv(y)`.
"""

from __future__ import annotations

import weakref
from typing import Any


class Transform:
    """Base class of transformations. A subclass has `_call`, `_inverse` and `log_abs_det_jacobian`.

    >>> import tracejit
    >>> from tracejit.distributions import ExpTransform
    >>> exp = ExpTransform()
    >>> exp(tracejit.tensor(0.0)), exp.inv(tracejit.tensor(1.0))
    (tensor(1.), tensor(0.))
    """

    bijective = False
    domain: Any
    codomain: Any
    _inverse_held: Any = None  # a weak reference, for the inverse holds this

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._cached: tuple[Any, Any] | None = None

    @property
    def event_dim(self) -> int:
        """Number of dimensions of one event. ValueError where domain and codomain differ."""
        if self.domain.event_dim == self.codomain.event_dim:
            return int(self.domain.event_dim)
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Any:
        """Inverse transformation, the same object while the user holds it. Its `inv` is this
        one."""
        inverse = self._inverse_held() if self._inverse_held is not None else None
        if inverse is None:
            inverse = self._make_inverse()
            self._inverse_held = weakref.ref(inverse)
        return inverse

    def _make_inverse(self) -> Any:
        return _InverseTransform(self)

    def __getstate__(self) -> dict[str, Any]:
        # weak references cannot be pickled
        return self.__dict__ | {"_inverse_held": None}

    @property
    def sign(self) -> Any:
        """Sign of the derivative of a bijection of one variable."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Any:
        """Return the same transformation with another `cache_size`."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self.__eq__(other)

    # equal by tensors' values, which change: no key of a dict
    __hash__ = None  # type: ignore[assignment]

    def __call__(self, x: Any) -> Any:
        if self._cache_size == 0:
            return self._call(x)
        if self._cached is not None and x is self._cached[0]:
            return self._cached[1]
        y = self._call(x)
        self._cached = x, y
        return y

    def _inv_call(self, y: Any) -> Any:
        if self._cache_size == 0:
            return self._inverse(y)
        if self._cached is not None and y is self._cached[1]:
            return self._cached[0]
        x = self._inverse(y)
        self._cached = x, y
        return x

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return log |det dy/dx|, one for each event."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.__class__.__name__ + "()"

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of t(x) for an x of this shape."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of t.inv(y) for a y of this shape."""
        return shape


class _InverseTransform(Transform):
    def __init__(self, transform: Transform):
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return self._inv.codomain

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        return self._inv.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Any:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Any:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __call__(self, x: Any) -> Any:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self._inv!r})"

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)
