"""`tracejit.Size`: the tuple that `tensor.shape` is.

In: ints, and symbolic sizes while a function is recorded. Out: a tuple with `numel()` that prints
like torch's.
"""

from __future__ import annotations

from typing import Any

from tracejit.eager.recording import settled


class Size(tuple):
    """The shape of a tensor.

    >>> import tracejit
    >>> s = tracejit.Size([2, 3])
    >>> s, s.numel(), s == (2, 3), s[1:]
    (tracejit.Size([2, 3]), 6, True, tracejit.Size([3]))
    """

    __slots__ = ()

    def numel(self) -> Any:
        """The number of elements of a tensor of this shape."""
        total: Any = 1
        for size in self:
            total = total * size
        return total

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return Size(found) if type(key) is slice else found

    def __add__(self, other: Any) -> Any:
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other: Any) -> Any:
        return Size(tuple(other) + tuple(self))

    def __mul__(self, count: Any) -> Any:
        return Size(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"tracejit.Size([{', '.join(str(settled(size)) for size in self)}])"

    __str__ = __repr__

    def __reduce__(self) -> tuple:
        return (Size, (tuple(self),))
