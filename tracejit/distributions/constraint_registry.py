"""Transformations from unconstrained vectors to values that satisfy a constraint.

In: a constraint. Out: a transformation whose codomain satisfies it. Called by users as
`transform_to(constraint)` and `biject_to(constraint)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.ops.pointwise_record import is_number
from tracejit.distributions import constraints, transforms
from tracejit.distributions.constraints import Constraint


class ConstraintRegistry:
    """Factories of transformations by the type of a constraint.

    >>> import tracejit
    >>> transform_to(constraints.simplex)
    SoftmaxTransform()
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}

    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Register a factory for a constraint's type; without a factory, as a decorator.

        TypeError for what is no constraint.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, Constraint):
            raise TypeError("Expected constraint to be either a Constraint subclass or instance, "
                            f"but got {kind}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Any:
        """Return the transformation. Raise NotImplementedError where none is registered."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds: Any) -> Callable[[Any], Any]:
    def register(factory: Callable[[Any], Any]) -> Callable[[Any], Any]:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return register


@_both(constraints.real)
def _to_real(constraint: Any) -> Any:
    return transforms.identity_transform


def _independent(registry: ConstraintRegistry) -> Callable[[Any], Any]:
    return lambda constraint: transforms.IndependentTransform(
        registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims)


biject_to.register(constraints.independent, _independent(biject_to))
transform_to.register(constraints.independent, _independent(transform_to))


@_both(constraints.greater_than, constraints.greater_than_eq)
def _to_greater(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        # exp is positive: only rounding reaches the bound
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)])


@_both(constraints.less_than)
def _to_less(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)])


@_both(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if is_number(low) and low == 0 and is_number(high) and high == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


@biject_to.register(constraints.simplex)
def _onto_simplex(constraint: Any) -> Any:
    # a bijection: K - 1 numbers to K chances
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _to_simplex(constraint: Any) -> Any:
    # no bijection, but it treats all K positions alike
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _to_lower_cholesky(constraint: Any) -> Any:
    # no bijection, so not in `biject_to`: the upper triangle is ignored
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _to_positive_definite(constraint: Any) -> Any:
    return transforms.PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _to_correlations(constraint: Any) -> Any:
    return transforms.CorrCholeskyTransform()


def _joined(registry: ConstraintRegistry) -> None:
    registry.register(constraints.cat, lambda constraint: transforms.CatTransform(
        [registry(c) for c in constraint.cseq], constraint.dim, constraint.lengths))
    registry.register(constraints.stack, lambda constraint: transforms.StackTransform(
        [registry(c) for c in constraint.cseq], constraint.dim))


_joined(biject_to)
_joined(transform_to)
