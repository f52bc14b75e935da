"""Gradients of parts of a tensor, which a recording puts side by side.

In: gradients that arrive at a node through `select` and `slice`, one after the other. Out: their
sum, as one `cat`. Called by the engine while it is recorded. The sum of n wholes, each a part among
zeros, would cost n operations for each element, and a kernel of as many lines.

Elements are the same bits as those of sums of wholes. There 0.0 is added wherever another part
lies, and -0.0 + 0.0 is 0.0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

from tracejit.core.eager.accumulation import summed
from tracejit.core.eager.conditional_grad import (
    ConditionalGrad,
    added,
    both,
    condition_of,
    either,
    grad_of,
)
from tracejit.core.eager.saved import Unsaved
from tracejit.core.eager.state import TensorState
from tracejit.core.ops.joining import cat
from tracejit.core.ops.pointwise import where
from tracejit.core.ops.shapes import same_structure
from tracejit.core.ops.slicing import slice_backward_record, slice_record

Place = tuple[int, int]
_FEW = 8  # places from which on a `cat` is less work than a sum


class Parts:
    """Gradient of a whole as gradients of its parts, which lie at other places or at the same one.

    dim, size  the dimension along which the parts lie, and the whole's size there
    arrived    (place, gradient) in the order in which they came; a place is (first row, end)
    places     place -> when gradients arrive there: True or a Condition
    base       the gradient of the whole that came before all parts, or None
    """

    __slots__ = ("dim", "size", "arrived", "places", "base")

    def __init__(self, dim: int, size: Any, place: Place, grad: Any):
        self.dim, self.size = dim, size
        self.arrived = [(place, grad)]
        self.places = {place: condition_of(grad)}
        self.base: Any = None

    def takes(self, other: Parts) -> bool:
        """Add a single part. Return False, and do nothing, where it overlaps some rows halfway."""
        (place, when), = other.places.items()
        first, end = place
        if other.dim != self.dim or other.base is not None:
            return False
        held = self.places.get(place)
        if held is None and any(a < end and first < b for a, b in self.places):
            return False
        self.arrived += other.arrived
        self.places[place] = when if held is None else either(held, when)
        return True

    def whole(self) -> Any:
        """Return the gradient of the whole: a tensor, or a conditional one."""
        if len(self.places) < _FEW:
            wholes = [_with_condition(grad, partial(self._alone, place))
                      for place, grad in self.arrived]
            return reduce(_sum, wholes if self.base is None else [self.base, *wholes])
        any_of: Any = False  # when parts arrive
        several: Any = False  # when they do at two places
        for when in self.places.values():
            several = either(several, both(any_of, when))
            any_of = either(any_of, when)
        always = any_of if self.base is None else either(any_of, condition_of(self.base))
        total = self._among_zeros(any_of) if self.base is None else self._in_base(any_of, always)
        if several is True or several is always:
            total = total + 0.0
        elif several is not False:
            total = where(several.tensor(), total + 0.0, total)
        if self.base is not None and any_of is not True:
            total = where(any_of.tensor(), total, grad_of(self.base))
        return total if always is True else ConditionalGrad(total, always)

    def _sums(self) -> list[tuple[Place, Any]]:
        """Return the places in order, each with the sum of what arrives there and of the base's
        rows."""
        sums: dict[Place, Any] = {}
        for place, grad in self.arrived:
            before = sums[place] if place in sums else self._narrowed(*place)
            sums[place] = grad if before is None else _sum(before, grad)
        return sorted(sums.items(), key=lambda item: item[0])

    def _among_zeros(self, any_of: Any) -> Any:
        """Return the sums one after the other, with zeros around them.

        any_of  when parts arrive
        """
        sums = self._sums()
        pieces, row = [], sums[0][0][0]
        for (first, end), grad in sums:
            rows = _or_zeros(grad, any_of)
            if first != row:
                rows = _widened(rows, self.dim, end - row, first - row, end - row)
            pieces.append(rows)
            row = end
        return _widened(cat(pieces, self.dim), self.dim, self.size, sums[0][0][0], row)

    def _in_base(self, any_of: Any, always: Any) -> Any:
        """Return the sums one after the other, with the base's rows between them, as they are where
        a part arrives: 0.0 is added to rows at which none does.

        any_of, always  when parts arrive, and when they or the base do
        """
        pieces: list[Any] = []
        row: Any = 0
        for (first, end), grad in self._sums():
            if first != row:
                pieces.append(self._narrowed(row, first, 0.0))
            when = self.places[first, end]
            if when is not True and when is not any_of:
                around = grad_of(self._narrowed(first, end, 0.0))
                grad = _with_condition(grad, partial(_chosen, when, around))
            pieces.append(grad)
            row = end
        if not same_structure(row, self.size):  # a symbolic size may equal it: an empty piece then
            pieces.append(self._narrowed(row, self.size, 0.0))
        return cat([_or_zeros(rows, always) for rows in pieces], self.dim)

    def _alone(self, place: Place, rows: Any) -> Any:
        return _widened(rows, self.dim, self.size, *place)

    def _narrowed(self, first: Any, end: Any, more: float | None = None) -> Any:
        """Return rows of the base, to which `more` is added; None without a base."""
        def rows_of(whole: Any) -> Any:
            rows = slice_record(whole, dim=self.dim, start=first, stop=end, step=1)
            return rows if more is None else rows + more

        return None if self.base is None else _with_condition(self.base, rows_of)


def part_of(node: Any, grad: Any) -> Parts | None:
    """Return the gradient of a node's operand. Return None where the node does not look at rows
    whose numbers are known."""
    if node.operands is None or not node.symbolic or type(node.operands[0]) is not Unsaved:
        return None
    at, tensor = node.attributes, grad_of(grad)
    one = "index" in at
    first = at["index"] if one else at["start"]
    if type(first) is not int or not isinstance(tensor, TensorState):
        return None
    end = first + 1 if one else at["stop"]
    if type(end) is not int or end <= first or not one and at["step"] != 1:
        return None
    dim = at["dim"]
    if one:
        tensor = tensor.unsqueeze(dim)
    if type(grad) is ConditionalGrad:
        tensor = ConditionalGrad(tensor, grad.condition)
    return Parts(dim, node.operands[0].shape[dim], (first, end), tensor)


def together(held: Any, grad: Any) -> Any:
    """Return the sum of two gradients of which one is of parts, or both."""
    if type(grad) is Parts and grad.base is None:
        if type(held) is Parts:
            if held.takes(grad):
                return held
        elif isinstance(grad_of(held), TensorState):
            grad.base = held
            return grad
    return _sum(resolved_parts(held), resolved_parts(grad))


def resolved_parts(grad: Any) -> Any:
    """Return the gradient of a whole."""
    return grad.whole() if type(grad) is Parts else grad


def _sum(a: Any, b: Any) -> Any:
    if type(a) is ConditionalGrad or type(b) is ConditionalGrad:
        return added(a, b)
    return summed(a, b)


def _with_condition(grad: Any, change: Callable[[Any], Any]) -> Any:
    if type(grad) is ConditionalGrad:
        return ConditionalGrad(change(grad.grad), grad.condition)
    return change(grad)


def _or_zeros(grad: Any, always: Any) -> Any:
    """Return rows, zeros where they do not arrive though others do."""
    if type(grad) is not ConditionalGrad:
        return grad
    return grad.grad if grad.condition is always else grad.or_zeros()


def _chosen(when: Any, around: Any, rows: Any) -> Any:
    return where(when.tensor(), rows, around)


def _widened(rows: Any, dim: int, size: Any, first: int, end: int) -> Any:
    """Return rows among zeros."""
    return slice_backward_record(rows, size=size, dim=dim, start=first, stop=end, step=1)
