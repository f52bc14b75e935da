"""Gradients that arrive only under a condition: branches and loops of a recording give them.

In: deferred gradients, each with the condition under which it arrives. Out: their sums, and what
nodes make of them. Zeros would not be the same: they become NaN where a derivative is infinite. A
node that no gradient reaches does not run, so writes to what it saved do not matter. Called by the
engine and by `jit/autodiff`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import product
from typing import Any

from tracejit.core.ops.pointwise import where

_MOST_FLAGS = 4  # rows double with each flag; formulas of more become one computed flag


class Condition:
    """Formula over flags, which are deferred bool tensors. `holds`: the rows of flag values for
    which it is true."""

    __slots__ = ("flags", "holds")

    def __init__(self, flags: tuple, holds: frozenset[tuple[bool, ...]]):
        self.flags, self.holds = flags, holds

    def under(self, answers: dict[int, bool]) -> bool:
        return tuple([answers[id(flag)] for flag in self.flags]) in self.holds

    def tensor(self) -> Any:
        """Compute the formula as a bool tensor."""
        return _formula(self.flags, self.holds)

    def known(self) -> Any:
        """Return the truth of the formula if all flags have values, which they have once their
        segment ran. Else return the condition itself."""
        if any(flag._storage is None for flag in self.flags):
            return self
        return self.under({id(flag): bool(flag) for flag in self.flags})


def _formula(flags: tuple, rows: frozenset[tuple[bool, ...]]) -> Any:
    """Compute if the values of `flags` are one of `rows`: a tensor or a bool.

    It decides by the first flag what the others must be, so "any of them" takes one op a flag.
    """
    if len(rows) in (0, 1 << len(flags)):
        return bool(rows)
    flag, rest = flags[0], flags[1:]
    without, given = (frozenset(row[1:] for row in rows if row[0] is yes) for yes in (False, True))
    if without == given:
        return _formula(rest, given)
    if without <= given:
        return _or(_and(flag, _formula(rest, given)), _formula(rest, without))
    if given <= without:
        return _or(_and(~flag, _formula(rest, without)), _formula(rest, given))
    return _or(_and(flag, _formula(rest, given)), _and(~flag, _formula(rest, without)))


def _or(a: Any, b: Any) -> Any:
    if type(a) is bool or type(b) is bool:
        one, other = (a, b) if type(a) is bool else (b, a)
        return True if one else other
    return a | b


def _and(a: Any, b: Any) -> Any:
    if type(b) is bool:
        return a if b else False
    return a & b


def if_true(flag: Any) -> Condition:
    return Condition((flag,), frozenset([(True,)]))


def if_false(flag: Any) -> Condition:
    return Condition((flag,), frozenset([(False,)]))


def either(*conditions: Any) -> Any:
    """Return True, False or the Condition that at least one of these (Conditions or bools)
    holds."""
    return reduce(lambda a, b: _joined(a, b, lambda x, y: x or y), conditions, False)


def both(*conditions: Any) -> Any:
    """Return True, False or the Condition that all of these hold."""
    return reduce(lambda a, b: _joined(a, b, lambda x, y: x and y), conditions, True)


def _joined(a: Any, b: Any, of: Callable[[bool, bool], bool]) -> Any:
    if a is b:
        return a
    if type(a) is bool or type(b) is bool:
        one, other = (a, b) if type(a) is bool else (b, a)
        # Either the bool decides alone, or the condition does.
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
    """Gradient that arrives if `condition` holds; else the elements of `grad` mean nothing."""

    __slots__ = ("grad", "condition")

    def __init__(self, grad: Any, condition: Condition):
        self.grad, self.condition = grad, condition

    def or_zeros(self) -> Any:
        return where(self.condition.tensor(), self.grad, 0.0)


def condition_of(grad: Any) -> Any:
    """Return when a gradient arrives: True, False or a Condition."""
    return grad.condition if type(grad) is ConditionalGrad else grad is not None


def grad_of(grad: Any) -> Any:
    """Return a gradient without its condition. At a leaf there is none: both sides of a branch lead
    to the same leaves."""
    return grad.grad if type(grad) is ConditionalGrad else grad


def under(condition: Any, grad: Any) -> Any:
    """Return the gradient (which may be conditional or None) under a further condition."""
    condition = both(condition, condition_of(grad))
    if type(condition) is bool:
        return grad_of(grad) if condition else None
    return ConditionalGrad(grad_of(grad), condition)


def added(a: Any, b: Any) -> Any:
    """Add two gradients, one or both conditional."""
    one, other = condition_of(a), condition_of(b)
    if one is True:
        return where(other.tensor(), a + b.grad, a)
    if other is True:
        return where(one.tensor(), a.grad + b, b)
    if one is other:
        return ConditionalGrad(a.grad + b.grad, one)
    together, any_of = both(one, other), either(one, other)
    # Not a + b with zeros: a gradient that does not arrive may hold NaN.
    total = where(one.tensor(), a.grad, b.grad)
    if together is not False:
        total = where(together.tensor(), a.grad + b.grad, total)
    return total if any_of is True else ConditionalGrad(total, any_of)


def resolved(grads: Iterable[Any]) -> list[Any]:
    """Drop the conditions whose flags have values now: such a gradient arrives or becomes None."""
    return [under(grad.condition.known(), grad.grad) if type(grad) is ConditionalGrad else grad
            for grad in grads]


def through(apply: Callable[[list], Sequence[Any]], grads: Sequence[Any]) -> list[Any]:
    """Apply a node to conditional gradients. Its results arrive if one of these does."""
    condition = either(*map(condition_of, grads))
    return [None if g is None else under(condition, g) for g in apply(filled(grads))]


def filled(grads: Sequence[Any]) -> list[Any]:
    """Return the gradients as a node gets them that runs if one arrives: the others are zeros
    then."""
    given = [condition_of(g) for g in grads if g is not None]
    alike = all(c is given[0] for c in given)
    return [g if type(g) is not ConditionalGrad else g.grad if alike else g.or_zeros()
            for g in grads]
