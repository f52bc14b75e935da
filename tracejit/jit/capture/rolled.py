"""List that a rolled loop appended to: its elements are slices of one stacked tensor.

In: empty list displays of rewritten code, which become `StackedList`s; `append`s inside a rolled
loop. Out: `stack` and `cat` of such a list, which do not take the slices. Any other look at the
list takes them: then it is an ordinary list of tensors, and the number of iterations is guarded.
Called by `control.py`, `calls.py` and `loops.py`.
"""

from __future__ import annotations

import gc
import operator
import weakref
from collections.abc import Callable
from typing import Any

from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.joining import cat, stack
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.looking import is_a, stands_in


class StackedSlices:
    """Elements of a list: `count` slices of `whole` along its first dimension.

    `held`: by position, negative from the end, the tensor that stands for that slice, because a
    variable holds it or its memory. `values`: what these hold if no code has written them.
    """

    def __init__(self, whole: Tensor, count: Any, held: dict[int, Tensor]):
        self.whole, self.count, self.held = whole, count, held
        self.values = [(x, _recorder().traced(x).read()) for x in held.values()]

    def taken(self) -> list[Tensor]:
        """Return the elements, slices in memory of their own. Their number is guarded."""
        count = int(self.count)
        known = {k % count: x for k, x in self.held.items() if -count <= k < count}
        return [known[k] if k in known else self.whole[k].clone() for k in range(count)]

    def are_rows(self) -> bool:
        """Return True if the elements still hold what `whole` does: no held one is written."""
        tracer = _recorder()
        if not self.values or tracer is None:
            return not self.values
        return all(tracer.traced(x).read() is _as_met(tracer, value) for x, value in self.values)


def _recorder() -> Any:
    return active.tracer


def _as_met(tracer: Any, value: Any) -> Any:
    """Return this graph's value for one of this graph or a graph around; None if this graph has not
    met it."""
    if value.graph is tracer.graph or tracer.root is tracer:
        return value
    return tracer.captured.get(_as_met(tracer.parent, value))


@stands_in
class StackedList(list):
    """List whose tail may be slices of stacked tensors, not taken yet.

    Functions of this file work on the tail, since a list has no such methods.
    """

    __slots__ = ("_tail", "_ordinary", "__weakref__")

    def __init__(self, *given: Any):
        list.__init__(self, *given)
        self._ordinary: list[Any] | None = None  # the list that takes its place after the call
        self._tail: list[Any] = []  # StackedSlices and elements, after what the list itself holds

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return list

    def append(self, *element: Any, **given: Any) -> None:
        if self._tail and len(element) == 1 and not given:
            self._tail.append(element[0])
        else:
            list.append(self, *element, **given)

    def __reduce__(self) -> Any:
        return (list, (list(self),))


def ordinary(stacked: StackedList) -> list[Any]:
    """Return the plain list that takes this one's place after the call, one for each
    `StackedList`."""
    if stacked._ordinary is None:
        stacked._ordinary = list(stacked)
    return stacked._ordinary


def _read(stacked: StackedList) -> None:
    """Note that code looks at the list: a loop that appends to it in the same trial cannot be
    rolled."""
    region = active.tracer
    if region is not None and region.root.speculation_depth:  # type: ignore[attr-defined]
        region.root.lists_read.append(stacked)  # type: ignore[attr-defined]


def extend_by(stacked: StackedList, whole: Tensor, count: Any, held: dict[int, Tensor]) -> None:
    """Append the slices of `whole`, which are not taken. `held`: see `StackedSlices`."""
    stacked._tail.append(StackedSlices(whole, count, held))


def materialize_list(stacked: StackedList) -> None:
    """Take the slices: from now on an ordinary list. Raise RegionRefused in a trial."""
    region = active.tracer
    if region is not None and region.root.speculation_depth:  # type: ignore[attr-defined]
        raise RegionRefused("it reads a list that a loop filled")
    tail, stacked._tail = stacked._tail, []
    for part in tail:
        if is_a(part, StackedSlices):
            list.extend(stacked, part.taken())
        else:
            list.append(stacked, part)


def length(stacked: StackedList) -> Any:
    """Return the number of elements, an int or a symbolic size."""
    _read(stacked)
    return list.__len__(stacked) + sum(
        part.count if is_a(part, StackedSlices) else 1 for part in stacked._tail)


def joined(stacked: StackedList, together: Callable[..., Tensor], dim: int) -> Tensor | None:
    """Return `together` (`stack` or `cat`) of the elements along `dim`; None if it needs the
    elements."""
    _read(stacked)
    parts = [part for part in stacked._tail if is_a(part, StackedSlices)]
    if not parts or not all(part.are_rows() for part in parts):
        return None
    first = list(list.__iter__(stacked))
    found = [together(first, dim)] if first else []
    for part in stacked._tail:
        if is_a(part, StackedSlices):
            found.append(_laid(part.whole, together, dim))
        else:
            found.append(together([part], dim))
    return found[0] if len(found) == 1 else cat(found, dim)


def _laid(whole: Tensor, together: Callable[..., Tensor], dim: int) -> Tensor:
    if together is stack:
        return whole.movedim(0, dim).clone().contiguous()
    rank = len(whole.shape) - 1
    dim = dim % rank
    moved = whole.movedim(0, dim)
    shape = moved.shape
    joined = moved.clone().contiguous()
    return joined.view((*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2:]))


def _looked_at(stacked: StackedList) -> StackedList:
    _read(stacked)
    if stacked._tail:
        materialize_list(stacked)
    return stacked


def _materializing(name: str) -> Callable[..., Any]:
    plain = getattr(list, name)

    def method(self: StackedList, *args: Any, **kwargs: Any) -> Any:
        return plain(_looked_at(self), *args, **kwargs)

    method.__name__ = name
    return method


for _name in (
    "__len__ __iter__ __getitem__ __setitem__ __delitem__ __contains__ __eq__ __ne__ __lt__ __le__ "
    "__gt__ __ge__ __reversed__ __repr__ extend insert pop remove clear index count sort reverse "
    "copy"
).split():
    setattr(StackedList, _name, _materializing(_name))


def _operator(operate: Callable[[Any, Any], Any], reflected: bool = False) -> Callable[..., Any]:
    """Return a method for `+` or `*` on the plain list: the other operand may define the operator
    for lists."""

    def method(self: StackedList, other: Any) -> Any:
        plain = list(self)
        return operate(other, plain) if reflected else operate(plain, other)

    return method


def _extended(self: StackedList, other: Any) -> Any:
    ask = getattr(type(other), "__radd__", None)  # Python asks it first
    made = NotImplemented if ask is None else ask(other, list(self))
    return list.__iadd__(_looked_at(self), other) if made is NotImplemented else made


def _repeated(self: StackedList, other: Any) -> Any:
    return list.__imul__(_looked_at(self), other) if is_a(other, int) else list(self) * other


for _name, _operate in (("add", operator.add), ("mul", operator.mul)):
    setattr(StackedList, f"__{_name}__", _operator(_operate))
    setattr(StackedList, f"__r{_name}__", _operator(_operate, reflected=True))
StackedList.__iadd__, StackedList.__imul__ = _extended, _repeated  # type: ignore
StackedList.__name__ = StackedList.__qualname__ = "list"  # in Python's error texts


def materialize_lists(stacked: list[weakref.ref[StackedList]]) -> None:
    """Take the slices of those lists that are still alive."""
    if any(found._tail for found in _alive(stacked)):
        gc.collect(1)  # a list that only a young cycle of garbage holds need not be taken
    for found in _alive(stacked):
        if found._tail:
            materialize_list(found)


def _alive(stacked: list[weakref.ref[StackedList]]) -> list[StackedList]:
    return [found for found in (reference() for reference in stacked) if found is not None]
