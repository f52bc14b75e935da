"""Layers that add elements at both ends of the last one to three dimensions.

In: tensors, and for each dimension, the last one first, how many before and after: one number, or
two for each. Out: tensors of as many dimensions. They call `nn.functional.pad`.
"""

from __future__ import annotations

from typing import Any

from tracejit.nn import functional as F
from tracejit.nn.module import Module


class _Pad(Module):
    """Base class of padding layers: the amounts, and the mode."""

    dimensions: int
    mode: str

    def __init__(self, padding: Any) -> None:
        super().__init__()
        listed = isinstance(padding, (tuple, list))
        self.padding = tuple(padding) if listed else (padding,) * 2 * self.dimensions

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _CircularPadNd(_Pad):
    mode = "circular"

    def forward(self, input: Any) -> Any:
        n, ndim = self.dimensions, len(input.shape)
        if ndim not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {ndim}D input)")
        return super().forward(input)


class _ReflectionPadNd(_Pad):
    mode = "reflect"


class _ReplicationPadNd(_Pad):
    mode = "replicate"


class ConstantPad1d(_ConstantPadNd):
    """Sequences with `value` around the last dimension.

    padding  (left, right), in elements, or one int for both; negative ints take elements away
    value    the number that fills

    Input of any shape (*, L); output (*, L + left + right) of the same dtype. Raises RuntimeError
    where a negative amount takes more than there is.

    >>> import tracejit
    >>> tracejit.nn.ConstantPad1d((1, 2), 7.0)(tracejit.zeros(2)).tolist()
    [7.0, 0.0, 0.0, 7.0, 7.0]
    """

    dimensions = 1


class ConstantPad2d(_ConstantPadNd):
    """Images with `value` around the last 2 dimensions.

    padding  (left, right, top, bottom), in elements, or one int for all; negative ints take
             elements away
    value    the number that fills

    Input (*, H, W); output (*, H + top + bottom, W + left + right) of the same dtype. Raises
    RuntimeError where a negative amount takes more than there is.

    >>> import tracejit
    >>> tracejit.nn.ConstantPad2d((1, 0, 0, 0), 7.0)(tracejit.zeros(1, 2)).tolist()
    [[7.0, 0.0, 0.0]]
    """

    dimensions = 2


class ConstantPad3d(_ConstantPadNd):
    """Volumes with `value` around the last 3 dimensions.

    padding  (left, right, top, bottom, front, back), in elements, or one int for all; negative ints
             take elements away
    value    the number that fills

    Input (*, D, H, W); output (*, D + front + back, H + top + bottom, W + left + right).

    >>> import tracejit
    >>> tracejit.nn.ConstantPad3d((1, 1, 0, 0, 0, 2), 7.0)(tracejit.zeros(1, 1, 1)).shape
    tracejit.Size([3, 1, 3])
    """

    dimensions = 3


class ZeroPad1d(ConstantPad1d):
    """Sequences with zeros around the last dimension.

    padding  (left, right), in elements, or one int for both; negative ints take elements away

    Input of any shape (*, L); output (*, L + left + right) of the same dtype. Raises RuntimeError
    where a negative amount takes more than there is.

    >>> import tracejit
    >>> tracejit.nn.ZeroPad1d(1)(tracejit.ones(2)).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Images with zeros around the last 2 dimensions.

    padding  (left, right, top, bottom), in elements, or one int for all; negative ints take
             elements away

    Input (*, H, W); output (*, H + top + bottom, W + left + right) of the same dtype. Raises
    RuntimeError where a negative amount takes more than there is.

    >>> import tracejit
    >>> tracejit.nn.ZeroPad2d((1, 0, 0, 0))(tracejit.ones(1, 2)).tolist()
    [[0.0, 1.0, 1.0]]
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Volumes with zeros around the last 3 dimensions.

    padding  (left, right, top, bottom, front, back), in elements, or one int for all; negative ints
             take elements away

    Input (*, D, H, W); output (*, D + front + back, H + top + bottom, W + left + right).

    >>> import tracejit
    >>> tracejit.nn.ZeroPad3d(1)(tracejit.ones(1, 1, 1)).shape
    tracejit.Size([3, 3, 3])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ReflectionPad1d(_ReflectionPadNd):
    """Sequences mirrored at their ends, which are not repeated.

    padding  (left, right), in elements, or one int for both; each less than L

    Input (N, C, L) or (C, L); output (N, C, L + left + right) of the same dtype. Raises
    RuntimeError for larger amounts, NotImplementedError for inputs of other dimensions.

    >>> import tracejit
    >>> tracejit.nn.ReflectionPad1d((2, 0))(tracejit.arange(3.0).reshape(1, 3)).tolist()
    [[2.0, 1.0, 0.0, 1.0, 2.0]]
    """

    dimensions = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Images mirrored at their edges, which are not repeated.

    padding  (left, right, top, bottom), in elements, or one int for all; each less than its size

    Input (N, C, H, W) or (C, H, W); output (N, C, H + top + bottom, W + left + right). Raises
    RuntimeError for larger amounts, NotImplementedError for inputs of other dimensions.

    >>> import tracejit
    >>> tracejit.nn.ReflectionPad2d((1, 0, 0, 0))(tracejit.arange(2.0).reshape(1, 1, 2)).tolist()
    [[[1.0, 0.0, 1.0]]]
    """

    dimensions = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Volumes mirrored at their faces, which are not repeated.

    padding  (left, right, top, bottom, front, back), in elements, or one int for all; each less
             than its size

    Input (N, C, D, H, W) or (C, D, H, W); output of the same dimensions, larger by the amounts.
    Raises RuntimeError for larger amounts, NotImplementedError for inputs of other dimensions.

    >>> import tracejit
    >>> tracejit.nn.ReflectionPad3d(1)(tracejit.ones(1, 2, 2, 2)).shape
    tracejit.Size([1, 4, 4, 4])
    """

    dimensions = 3


class ReplicationPad1d(_ReplicationPadNd):
    """Sequences continued by their first and last elements.

    padding  (left, right), in elements, or one int for both

    Input (N, C, L) or (C, L); output (N, C, L + left + right) of the same dtype. Raises
    NotImplementedError for inputs of other dimensions.

    >>> import tracejit
    >>> tracejit.nn.ReplicationPad1d((2, 0))(tracejit.arange(3.0).reshape(1, 3)).tolist()
    [[0.0, 0.0, 0.0, 1.0, 2.0]]
    """

    dimensions = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Images continued by the elements at their edges.

    padding  (left, right, top, bottom), in elements, or one int for all

    Input (N, C, H, W) or (C, H, W); output (N, C, H + top + bottom, W + left + right) of the same
    dtype. Raises NotImplementedError for inputs of other dimensions.

    >>> import tracejit
    >>> tracejit.nn.ReplicationPad2d((1, 0, 0, 0))(tracejit.arange(2.0).reshape(1, 1, 2)).tolist()
    [[[0.0, 0.0, 1.0]]]
    """

    dimensions = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Volumes continued by the elements at their faces.

    padding  (left, right, top, bottom, front, back), in elements, or one int for all

    Input (N, C, D, H, W) or (C, D, H, W); output of the same dimensions, larger by the amounts.
    Raises NotImplementedError for inputs of other dimensions.

    >>> import tracejit
    >>> tracejit.nn.ReplicationPad3d(1)(tracejit.ones(1, 2, 2, 2)).shape
    tracejit.Size([1, 4, 4, 4])
    """

    dimensions = 3


class CircularPad1d(_CircularPadNd):
    """Sequences continued by their other end, as if they were circles.

    padding  (left, right), in elements, or one int for both; each at most L

    Input (N, C, L) or (C, L); output (N, C, L + left + right) of the same dtype. Raises ValueError
    for inputs of other dimensions, RuntimeError for amounts over one turn.

    >>> import tracejit
    >>> tracejit.nn.CircularPad1d((2, 0))(tracejit.arange(3.0).reshape(1, 3)).tolist()
    [[1.0, 2.0, 0.0, 1.0, 2.0]]
    """

    dimensions = 1


class CircularPad2d(_CircularPadNd):
    """Images continued by their other edge, as if they were tori.

    padding  (left, right, top, bottom), in elements, or one int for all; each at most its size

    Input (N, C, H, W) or (C, H, W); output (N, C, H + top + bottom, W + left + right). Raises
    ValueError for inputs of other dimensions, RuntimeError for amounts over one turn.

    >>> import tracejit
    >>> tracejit.nn.CircularPad2d((1, 0, 0, 0))(tracejit.arange(2.0).reshape(1, 1, 2)).tolist()
    [[[1.0, 0.0, 1.0]]]
    """

    dimensions = 2


class CircularPad3d(_CircularPadNd):
    """Volumes continued by their other face, in all three dimensions.

    padding  (left, right, top, bottom, front, back), in elements, or one int for all; each at most
             its size

    Input (N, C, D, H, W) or (C, D, H, W); output of the same dimensions, larger by the amounts.
    Raises ValueError for inputs of other dimensions, RuntimeError for amounts over one turn.

    >>> import tracejit
    >>> tracejit.nn.CircularPad3d(1)(tracejit.ones(1, 2, 2, 2)).shape
    tracejit.Size([1, 4, 4, 4])
    """

    dimensions = 3
