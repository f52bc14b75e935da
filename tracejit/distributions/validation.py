"""Checks of parameters and samples, made as the plain function makes them and captured with it.

In: a bool tensor that is True for valid elements, and a message; a new distribution. Out: nothing,
or ValueError. Called by `Distribution` and transforms.

While a function is captured the check becomes a node of the graph. Where it fails, the plain
function runs and raises the error with its message. The watcher passes over this file: it reads by
name only attributes that were just stored.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tracejit.core.eager.modes import enable_grad
from tracejit.core.eager.recording import active
from tracejit.core.ops.control import ErrorOf, raise_if_record
from tracejit.distributions import constraints

_INVALID = ErrorOf(ValueError, ("invalid values",))


class lazy_property:
    """Property that is computed at the first read, always with gradients, and then kept.

    >>> class Odds:
    ...     @lazy_property
    ...     def probs(self):
    ...         return [0.5]
    >>> odds = Odds()
    >>> odds.probs is odds.probs
    True
    """

    def __init__(self, function: Callable[[Any], Any]):
        self.function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.function(instance)
        # found before this descriptor from now on: it has no __set__
        setattr(instance, self.function.__name__, value)
        return value


def require(valid: Any, message: Callable[[], str]) -> None:
    """Raise ValueError with the message unless all elements are true.

    >>> import tracejit
    >>> require(tracejit.tensor([True, True]), lambda: "negative")
    """
    holds = valid.all()
    if active.tracer is None:
        if not holds:
            raise ValueError(message())
        return
    try:
        # a node of the program; a check that fails while it is captured raises here
        raise_if_record(holds.logical_not(), error=_INVALID)
    except ValueError as error:
        if error.args != _INVALID.arguments:
            raise
        raise ValueError(message()) from None


def check_parameters(distribution: Any) -> None:
    """Raise ValueError unless the parameters that were given satisfy their constraints."""
    try:
        declared = distribution.arg_constraints
    except NotImplementedError:
        warnings.warn(f"{type(distribution)} does not define `arg_constraints`. Please set "
                      "`arg_constraints = {}` or initialize the distribution with "
                      "`validate_args=False` to turn off validation.", stacklevel=4)
        return
    for name, constraint in declared.items():
        computed = isinstance(getattr(type(distribution), name, None), lazy_property)
        # a computed parameter follows from one that is checked
        given = not computed or name in vars(distribution)
        if given and not constraints.is_dependent(constraint):
            _check_parameter(distribution, name, constraint)


def _check_parameter(distribution: Any, name: str, constraint: Any) -> None:
    value = getattr(distribution, name)
    require(constraint.check(value), lambda: (
        f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of "
        f"distribution {distribution!r} to satisfy the constraint {constraint!r}, but found "
        f"invalid values:\n{value}"))
