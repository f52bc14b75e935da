"""`tracejit.Size`: the tuple type of `tensor.shape`.

In: ints, and symbolic sizes while a function is recorded. Out: a tuple with `numel()` that prints
like torch's.
"""

from __future__ import annotations

import operator
from typing import Any

from tracejit.core.eager.recording import ended_to_hints
from tracejit.core.ops.fitting import is_int
from tracejit.core.ops.shapes import broadcast, hint


class Size(tuple):
    """Shape of a tensor.

    >>> import tracejit
    >>> s = tracejit.Size([2, 3])
    >>> s, s.numel(), s == (2, 3), s[1:]
    (tracejit.Size([2, 3]), 6, True, tracejit.Size([3]))
    """

    __slots__ = ()

    def __new__(cls, sizes: Any = ()) -> Size:
        return tuple.__new__(cls, [_as_size(x, k) for k, x in enumerate(sizes)])

    def numel(self) -> Any:
        """Return the number of elements of a tensor of this shape."""
        total: Any = 1
        for size in self:
            total = total * size
        return total

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return tuple.__new__(Size, found) if type(key) is slice else found

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to "
                            "tracejit.Size")
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Any:
        return Size(tuple(other) + tuple(self))

    def __mul__(self, count: Any) -> Any:
        return tuple.__new__(Size, tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"tracejit.Size([{', '.join(str(ended_to_hints(size)) for size in self)}])"

    __str__ = __repr__

    def __reduce__(self) -> tuple:
        return (Size, (tuple(self),))


def _as_size(x: Any, place: int) -> Any:
    """Return an item of a Size. Raises TypeError for other objects than integers."""
    if type(x) is int or type(x) is not bool and is_int(x):
        return x
    try:
        return int(operator.index(x))
    except TypeError:
        raise TypeError("tracejit.Size() takes an iterable of 'int' (item "
                        f"{place} is '{type(x).__name__}')") from None


def broadcast_shapes(*shapes: Any) -> Size:
    """Return the shape to which these shapes broadcast.

    >>> import tracejit
    >>> tracejit.broadcast_shapes((2, 1), (3,))
    tracejit.Size([2, 3])

    Raises RuntimeError if there is none.
    """
    common: tuple = ()
    for number, given in enumerate(shapes):
        shape = tuple(given) if isinstance(given, (tuple, list)) else (given,)
        try:
            common = broadcast(common, shape)
        except RuntimeError:
            rank = min(len(common), len(shape))
            place = next(k for k in range(-1, -rank - 1, -1)
                         if hint(common[k]) != hint(shape[k]) and 1 not in (common[k], shape[k]))
            raise RuntimeError(
                f"Attempting to broadcast a dimension of length {hint(shape[place])} at {place}! "
                f"Mismatching argument at index {number} had {shape}; but expected shape should be "
                f"broadcastable to {[hint(n) for n in common]}") from None
    return Size(common)
