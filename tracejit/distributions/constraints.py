"""Constraints on the values of parameters and samples.

In: tensors. Out: a bool tensor, True for the elements, or events, that satisfy the constraint.
Called by distributions to check their parameters and samples, and by users as
`constraints.positive` and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tracejit
from tracejit.core.ops.types import bool_

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky",
    "dependent", "dependent_property", "greater_than", "greater_than_eq",
    "half_open_interval", "independent", "integer_interval", "interval", "is_dependent",
    "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer",
    "positive_semidefinite", "real", "real_vector", "simplex", "square", "stack", "symmetric",
    "unit_interval",
]  # fmt: skip


class Constraint:
    """Base class of constraints. `event_dim` is the number of last dimensions of one event.

    >>> import tracejit
    >>> positive.check(tracejit.tensor([1.0, -1.0]))
    tensor([ True, False])
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Any) -> Any:
        """Return a bool tensor of shape value.shape[:-event_dim]: True for the valid events."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{self.__class__.__name__.lstrip('_')}()"


class _Dependent(Constraint):
    """Constraint that depends on a distribution's other parameters."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return bool(self._is_discrete)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return int(self._event_dim)

    def __call__(self, *, is_discrete: Any = NotImplemented,
                 event_dim: Any = NotImplemented) -> _Dependent:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim)

    def check(self, value: Any) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint")


class dependent_property(property, _Dependent):
    """Property that returns a constraint of a distribution. Read from the class, it is a dependent
    constraint.

    >>> class Bounded:
    ...     high = 1.0
    ...     @dependent_property(is_discrete=False, event_dim=0)
    ...     def support(self):
    ...         return less_than(self.high)
    >>> Bounded().support, is_dependent(Bounded.support)
    (LessThan(upper_bound=1.0), True)
    """

    def __init__(self, fn: Callable[..., Any] | None = None, *, is_discrete: Any = NotImplemented,
                 event_dim: Any = NotImplemented):
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[..., Any]) -> dependent_property:  # type: ignore[override]
        return dependent_property(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)

    def __repr__(self) -> str:
        return "DependentProperty()"


class _Independent(Constraint):
    """Constraint whose last `n` batch dimensions count as dimensions of the event."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        result = self.base_constraint.check(value)
        dims = self.reinterpreted_batch_ndims
        if result.dim() < dims:
            expected = self.base_constraint.event_dim + dims
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.dim()}")
        return result if dims == 0 else result.flatten(result.dim() - dims).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        return ((value == 0) | (value == 1)).all(-1) & value.sum(-1).eq(1)


class _Between(Constraint):
    """Values between two bounds, or on one side of one; numbers or tensors."""

    def __init__(self, lower_bound: Any = None, upper_bound: Any = None):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def __repr__(self) -> str:
        bounds = (("lower_bound", self.lower_bound), ("upper_bound", self.upper_bound))
        shown = [f"{name}={bound}" for name, bound in bounds if bound is not None]
        return f"{self.__class__.__name__.lstrip('_')}({', '.join(shown)})"


class _IntegerInterval(_Between):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_Between):
    is_discrete = True

    def __init__(self, upper_bound: Any):
        super().__init__(None, upper_bound)

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Between):
    is_discrete = True

    def __init__(self, lower_bound: Any):
        super().__init__(lower_bound)

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _GreaterThan(_Between):
    def __init__(self, lower_bound: Any):
        super().__init__(lower_bound)

    def check(self, value: Any) -> Any:
        return self.lower_bound < value


class _GreaterThanEq(_Between):
    def __init__(self, lower_bound: Any):
        super().__init__(lower_bound)

    def check(self, value: Any) -> Any:
        return self.lower_bound <= value


class _LessThan(_Between):
    def __init__(self, upper_bound: Any):
        super().__init__(None, upper_bound)

    def check(self, value: Any) -> Any:
        return value < self.upper_bound


class _Interval(_Between):
    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Real(Constraint):
    def check(self, value: Any) -> Any:
        # NaN is not equal to itself
        return value == value


class _Simplex(Constraint):
    """Vectors of nonnegative elements whose sum is 1."""

    event_dim = 1

    def check(self, value: Any) -> Any:
        # sums of chances are rounded
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Vectors of nonnegative integers whose sum is at most `upper_bound`."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any):
        self.upper_bound = upper_bound

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(Constraint):
    """Lower triangular matrices with a positive diagonal."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        triangular = (value.tril() == value).flatten(-2).all(-1)
        return triangular & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(Constraint):
    """Lower triangular matrices with a positive diagonal and rows of norm 1."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        # rounding of a norm grows with the length of the row
        bound = tracejit.finfo(value.dtype).eps * value.size(-1) * 10
        unit = ((tracejit.norm(value.detach(), dim=-1) - 1).abs() < bound).all(-1)
        return unit & _LowerCholesky().check(value)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        # decided by the shape: one answer for the whole batch
        square = value.shape[-2] == value.shape[-1]
        return tracejit.full(tuple(value.shape)[:-2], square, dtype=bool_, device=value.device)


class _Symmetric(_Square):
    def check(self, value: Any) -> Any:
        # isclose would raise for shapes that do not broadcast
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return tracejit.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        # the factorization reports a matrix that is not positive definite, and does not raise
        return super().check(value) & tracejit.linalg.cholesky_ex(value).info.eq(0)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        return super().check(value) & (tracejit.linalg.eigvalsh(value) >= 0).all(-1)


class _Joined(Constraint):
    """Constraints on slices of a tensor along `dim`."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0):
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(c.is_discrete for c in self.cseq)


class _Cat(_Joined):
    def __init__(self, cseq: Sequence[Constraint], dim: int = 0,
                 lengths: Sequence[int] | None = None):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Any) -> Any:
        parts = value.split(self.lengths, self.dim)
        return tracejit.cat([c.check(v) for c, v in zip(self.cseq, parts)], self.dim)


class _Stack(_Joined):
    @property
    def event_dim(self) -> int:  # type: ignore[override]
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Any) -> Any:
        parts = value.unbind(self.dim)
        return tracejit.stack([c.check(v) for c, v in zip(self.cseq, parts)], self.dim)


class MixtureSameFamilyConstraint(Constraint):
    """Constraint on values of a mixture: every component has to allow them."""

    def __init__(self, base_constraint: Constraint):
        if not isinstance(base_constraint, Constraint):
            raise AssertionError("base_constraint must be a Constraint instance, got "
                                 f"{type(base_constraint).__name__}")
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim

    def check(self, value: Any) -> Any:
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        # the value is compared with each component, and has to be valid for all
        valid = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        kept = value.dim() - self.event_dim
        return valid.flatten(kept).all(-1)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_constraint!r})"


def is_dependent(constraint: Any) -> bool:
    """Return True if a constraint depends on other parameters, so that it cannot be checked by
    itself."""
    return isinstance(constraint, _Dependent)


dependent = _Dependent()
independent = _Independent
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
