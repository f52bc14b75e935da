"""Gradients that arrive only if a value says so: what branches and loops of a recording send back.

In: deferred gradients with the condition under which there is one. Out: their sums, and what nodes
make of them. Zeros would not be the same: they become NaN where a derivative is infinite. What no
gradient reaches is not run, however its history has been overwritten. Called by the engine and by
differentiation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import product
from typing import Any

from tracejit.core.ops.pointwise import where

_MOST_FLAGS = 4  # in one formula; more become one flag


class Condition:
    """Formula over flags, deferred bool tensors: the answers of these for which it holds."""

    __slots__ = ("flags", "holds")

    def __init__(self, flags: tuple, holds: frozenset[tuple[bool, ...]]):
        self.flags, self.holds = flags, holds

    def under(self, answers: dict[int, bool]) -> bool:
        return tuple([answers[id(flag)] for flag in self.flags]) in self.holds

    def tensor(self) -> Any:
        """Compute the formula."""
        return reduce(_or, [reduce(_and, [flag if yes else ~flag
                                          for flag, yes in zip(self.flags, row)])
                            for row in sorted(self.holds)])

    def known(self) -> Any:
        """Return the answer where all flags have their values, which is after their segment."""
        if any(flag._storage is None for flag in self.flags):
            return self
        return self.under({id(flag): bool(flag) for flag in self.flags})


def _or(a: Any, b: Any) -> Any:
    return a | b


def _and(a: Any, b: Any) -> Any:
    return a & b


def if_true(flag: Any) -> Condition:
    return Condition((flag,), frozenset([(True,)]))


def if_false(flag: Any) -> Condition:
    return Condition((flag,), frozenset([(False,)]))


def either(*conditions: Any) -> Any:
    """Return whether one of the conditions holds; each is a Condition or a bool."""
    return reduce(lambda a, b: _joined(a, b, lambda x, y: x or y), conditions, False)


def both(*conditions: Any) -> Any:
    """Return whether all of the conditions hold."""
    return reduce(lambda a, b: _joined(a, b, lambda x, y: x and y), conditions, True)


def _joined(a: Any, b: Any, of: Callable[[bool, bool], bool]) -> Any:
    if a is b:
        return a
    if type(a) is bool or type(b) is bool:
        one, other = (a, b) if type(a) is bool else (b, a)
        alike = of(one, False), of(one, True)
        return alike[0] if alike[0] is alike[1] else other
    flags = {id(flag): flag for flag in (*a.flags, *b.flags)}
    if len(flags) > _MOST_FLAGS:
        return _joined(if_true(a.tensor()), if_true(b.tensor()), of)
    rows = [row for row in product((False, True), repeat=len(flags))
            if of(a.under(dict(zip(flags, row))), b.under(dict(zip(flags, row))))]
    if len(rows) in (0, 1 << len(flags)):
        return bool(rows)
    return Condition(tuple(flags.values()), frozenset(rows))


class ConditionalGrad:
    """Gradient that arrives if `condition` holds; else `grad` means nothing."""

    __slots__ = ("grad", "condition")

    def __init__(self, grad: Any, condition: Condition):
        self.grad, self.condition = grad, condition

    def or_zeros(self) -> Any:
        return where(self.condition.tensor(), self.grad, 0.0)


def condition_of(grad: Any) -> Any:
    """Return when there is a gradient: True, False or a Condition."""
    return grad.condition if type(grad) is ConditionalGrad else grad is not None


def grad_of(grad: Any) -> Any:
    """Return the gradient of a leaf, which arrives in any case: all sides of a branch meet the same
    leaves."""
    return grad.grad if type(grad) is ConditionalGrad else grad


def under(condition: Any, grad: Any) -> Any:
    """`grad`, which may be uncertain or None, if `condition` holds as well."""
    condition = both(condition, condition_of(grad))
    if type(condition) is bool:
        return grad_of(grad) if condition else None
    return ConditionalGrad(grad_of(grad), condition)


def added(a: Any, b: Any) -> Any:
    """Add two gradients of which one at least is uncertain."""
    one, other = condition_of(a), condition_of(b)
    if one is True:
        return where(other.tensor(), a + b.grad, a)
    if other is True:
        return where(one.tensor(), a.grad + b, b)
    if one is other:
        return ConditionalGrad(a.grad + b.grad, one)
    together, any_of = both(one, other), either(one, other)
    total = where(one.tensor(), a.grad, b.grad)
    if together is not False:
        total = where(together.tensor(), a.grad + b.grad, total)
    return total if any_of is True else ConditionalGrad(total, any_of)


def resolved(grads: Iterable[Any]) -> list[Any]:
    """Gradients, those no longer uncertain whose flags have their values now."""
    return [under(grad.condition.known(), grad.grad) if type(grad) is ConditionalGrad else grad
            for grad in grads]


def through(apply: Callable[[list], Sequence[Any]], grads: Sequence[Any]) -> list[Any]:
    """Return what a node makes of gradients of which some are uncertain."""
    condition = either(*map(condition_of, grads))
    return [None if g is None else under(condition, g) for g in apply(filled(grads))]


def filled(grads: Sequence[Any]) -> list[Any]:
    """Return the gradients for a node that runs if one of them arrives: zeros for the others
    then."""
    given = [condition_of(g) for g in grads if g is not None]
    alike = all(c is given[0] for c in given)
    return [g if type(g) is not ConditionalGrad else g.grad if alike else g.or_zeros()
            for g in grads]
