"""A list that a rolled loop appended to: its elements are slices of one stacked tensor.

In: empty list displays of `@script` code, which become `FollowedList`s; `append`s inside a rolled
loop. Out: `stack` and `cat` of such a list without taking it apart; as soon as anything else
looks at it, it is an ordinary list of tensors (then the number of iterations is guarded). Called
by `control.py`, `calls.py` and `loops.py`.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

from tracejit.capture.breaks import Refused
from tracejit.eager.recording import active
from tracejit.eager.tensor import Tensor
from tracejit.ops.joining import cat, stack


class Slices:
    """`count` elements: the slices of `whole` along its first dimension."""

    def __init__(self, whole: Tensor, count: Any):
        self.whole, self.count = whole, count


class FollowedList(list):
    """A list whose tail may be slices of stacked tensors not taken yet."""

    __slots__ = ("tail", "__weakref__")

    def __init__(self, *given: Any):
        super().__init__(*given)
        self.tail: list[Any] = []  # Slices and elements, after what the list itself holds

    def read(self) -> None:
        """Somebody looks at the list: a loop that appends to it meanwhile cannot be rolled."""
        region = active.recorder
        if region is not None and region.root.trials:  # type: ignore[attr-defined]
            region.root.lists_read.append(self)  # type: ignore[attr-defined]

    def extend_by(self, whole: Tensor, count: Any) -> None:
        """Append the slices of `whole`."""
        self.tail.append(Slices(whole, count))

    def append(self, element: Any) -> None:
        if self.tail:
            self.tail.append(element)
        else:
            list.append(self, element)

    def settle(self) -> None:
        """Take the slices: from now on an ordinary list."""
        region = active.recorder
        if region is not None and region.root.trials:  # type: ignore[attr-defined]
            raise Refused("a list that a loop filled is looked at")
        tail, self.tail = self.tail, []
        for part in tail:
            if isinstance(part, Slices):
                list.extend(self, [part.whole[k] for k in range(int(part.count))])
            else:
                list.append(self, part)

    def length(self) -> Any:
        """How many elements there are, an int or a size."""
        self.read()
        return list.__len__(self) + sum(
            part.count if isinstance(part, Slices) else 1 for part in self.tail)

    def joined(self, together: Callable[..., Tensor], dim: int) -> Tensor | None:
        """`stack(self, dim)` or `cat(self, dim)`; None where that needs the elements."""
        self.read()
        if not self.tail:
            return None
        first = list(list.__iter__(self))
        parts = [together(first, dim)] if first else []
        for part in self.tail:
            if isinstance(part, Slices):
                parts.append(_laid(part.whole, together, dim))
            else:
                parts.append(together([part], dim))
        return parts[0] if len(parts) == 1 else cat(parts, dim)

    def __reduce__(self) -> Any:
        return (list, (list(self),))


def _laid(whole: Tensor, together: Callable[..., Tensor], dim: int) -> Tensor:
    if together is stack:
        return whole.movedim(0, dim).clone().contiguous()
    rank = len(whole.shape) - 1
    dim = dim % rank
    moved = whole.movedim(0, dim)
    shape = moved.shape
    joined = moved.clone().contiguous()
    return joined.view((*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2:]))


def _settling(name: str) -> Callable[..., Any]:
    plain = getattr(list, name)

    def method(self: FollowedList, *args: Any, **kwargs: Any) -> Any:
        self.read()
        if self.tail:
            self.settle()
        return plain(self, *args, **kwargs)

    method.__name__ = name
    return method


for _name in (
    "__len__ __iter__ __getitem__ __setitem__ __delitem__ __contains__ __add__ __iadd__ __mul__ "
    "__imul__ __rmul__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __reversed__ __repr__ extend "
    "insert pop remove clear index count sort reverse copy"
).split():
    setattr(FollowedList, _name, _settling(_name))


def _added_to(self: FollowedList, other: list) -> list:
    self.settle()
    return other + list(self)


FollowedList.__radd__ = _added_to  # type: ignore[attr-defined]


def settle_lists(followed: list[weakref.ref[FollowedList]]) -> None:
    """Make ordinary lists of those that are still somewhere."""
    if any(found.tail for found in _alive(followed)):
        gc.collect()  # what only a cycle of garbage holds is nobody's
    for found in _alive(followed):
        if found.tail:
            found.settle()


def _alive(followed: list[weakref.ref[FollowedList]]) -> list[FollowedList]:
    return [found for found in (reference() for reference in followed) if found is not None]
