"""Elements that a rolled loop appends to lists and that look at memory of its variables.

In: a recorded body, `out.append(M[0, 1])` in it. Out: for each such element, the variable and the
views that lead from it. Every other element is a copy, for nobody holds its memory any more: the
next iteration gives the variable new memory. The first or the last element looks at memory that is
still held, before or behind the loop. It becomes a view of that. Raises `RegionRefused` where a
copy could be told from the view. Called by `loop_body.py` and `loops.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.record import apply
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.storage import UNKNOWN, FunctionalStorage, FunctionalTensor, View
from tracejit.jit.capture.strides import known_strides, offset

if TYPE_CHECKING:
    from tracejit.jit.capture.loop_body import LoopBodyTrace
    from tracejit.jit.capture.loop_variables import CarriedVar

SHARES = "two results of an iteration share memory"
EARLIER = "an element of a list shares memory with a variable of another iteration"


@dataclass(eq=False)
class ElementView:
    """Element that looks at the memory of a variable."""

    var: CarriedVar
    before: bool  # what the variable holds as the iteration starts, not as it ends
    views: tuple[View, ...]  # from the variable's tensor to the element

    def of(self, tensor: Tensor) -> Tensor:
        """Return the same view of another tensor; the tensor itself if there is no view."""
        for op, _, attributes in self.views:
            tensor = apply(op, (tensor,), attributes)
        return tensor


def element_views(body: LoopBodyTrace) -> dict[int, ElementView]:
    """Return, by the id of the element, those that look at a variable's memory."""
    found: dict[int, ElementView] = {}
    elements = [element for _, kept in body.appended.values() for element in kept]
    for element in elements:
        view = _of_end(body, element) or _of_start(body, element)
        if view is not None:
            found[id(element)] = view
    for element in elements:
        _check_handed_on(body, element)
    if found:
        _check_variables(body, elements, [*found.values()])
    _check_overlap([body.region.traced(element) for element in elements])
    return found


def handed_on(body: LoopBodyTrace, element: Tensor) -> list[CarriedVar]:
    """Return the variables that hold the element of the iteration before, of the one before that,
    and so on, where a variable ends with `element`: `before, h = h, f(h)`."""
    found: list[CarriedVar] = []
    containing = [v for v in _changing(body) if v.end is element]
    for _ in body.carried_vars:
        starts = {id(v.start) for v in containing}
        containing = [v for v in _changing(body) if id(v.end) in starts]
        if len({id(v.end) for v in containing}) > 1:
            raise RegionRefused(EARLIER)
        found += containing[:1]
    return found


def _of_end(body: LoopBodyTrace, element: Tensor) -> ElementView | None:
    """Return how an element looks at what a variable holds after the iteration."""
    traced = body.region.traced(element)
    for var in _changing(body):
        end = body.region.traced(var.end)
        if end.memory is traced.memory and element is not var.end:
            count = len(end.views)
            same = all(a is b for a, b in zip(end.views, traced.views))
            if count > len(traced.views) or not same:
                raise RegionRefused(SHARES)
            return _made(element, var, False, traced.views[count:], var.end)
    return None


def _of_start(body: LoopBodyTrace, element: Tensor) -> ElementView | None:
    """Return how an element looks at what a variable holds before the iteration."""
    traced = body.region.traced(element)
    for var in _changing(body):
        if body.region.traced(var.start).memory is traced.memory and not traced.memory.mutations:
            return _made(element, var, True, traced.views, var.start)
    return None


def _changing(body: LoopBodyTrace) -> Iterator[CarriedVar]:
    return (v for v in body.carried_vars if v.is_tensor and v.end is not v.start)


def _made(element: Tensor, var: CarriedVar, before: bool, views: tuple[View, ...],
          tensor: Tensor) -> ElementView:
    if any(operands for _, operands, _ in views) or element is not tensor and not views:
        raise RegionRefused(SHARES)
    if element._requires_grad is not tensor._requires_grad:
        raise RegionRefused("an element of a list and a variable share memory, and one of them "
                            "requires grad")
    return ElementView(var, before, views)


def _check_variables(body: LoopBodyTrace, elements: list[Tensor],
                     found: list[ElementView]) -> None:
    """Refuse if another variable or list may hold the memory that an element looks at, in a later
    iteration or behind the loop."""
    region = body.region

    def memory(x: Tensor) -> FunctionalStorage:
        return region.traced(x).memory

    ends = {memory(v.end) for v in _changing(body)}
    starts = {memory(v.start) for v in body.carried_vars if v.is_tensor}
    kept = {memory(x) for x in elements}
    for view in found:
        start, end = memory(view.var.start), memory(view.var.end)
        again = start in kept and end in kept
        if start in ends or end in starts or end in region.copies or again:
            raise RegionRefused(EARLIER)
        if any(region.sharing.memories.of(m) for m in (start, end)):
            raise RegionRefused("a tensor's value decides which tensor it appends")


def _check_handed_on(body: LoopBodyTrace, element: Tensor) -> None:
    """Refuse an element if a variable keeps a view of it, and not the element, for the next
    iteration."""
    region = body.region
    for var in _changing(body):
        if var.end is element:
            start = region.traced(var.start).memory
            for other in _changing(body):
                if region.traced(other.end).memory is start and other.end is not var.start:
                    raise RegionRefused(EARLIER)


def _check_overlap(elements: list[FunctionalTensor]) -> None:
    """Refuse elements that share a part of their memory: a write to one would be seen in both."""
    for one, other in combinations(elements, 2):
        if one.memory is other.memory:
            spans = [_span(one), _span(other)]
            if None in spans or spans[0][0] < spans[1][1] and spans[1][0] < spans[0][1]:
                raise RegionRefused(SHARES)


def _span(traced: FunctionalTensor) -> Any:
    """Return where a contiguous tensor begins and ends in its memory; None if sizes decide."""
    if traced.memory.strides is UNKNOWN or known_strides(traced) is not None:
        return None
    first, size = offset(traced, 0), 1
    for extent in traced.shape:
        size = size * extent
    return (first, first + size) if type(first) is int and type(size) is int else None
