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
    """`value` around the last dimension: see `ConstantPad2d`."""

    dimensions = 1


class ConstantPad2d(_ConstantPadNd):
    """`value` around the last 2 dimensions.

    padding  one number, or (left, right, top, bottom); negative numbers take elements away

    >>> import tracejit
    >>> tracejit.nn.ConstantPad2d((1, 0, 0, 0), 7.0)(tracejit.zeros(1, 2)).tolist()
    [[7.0, 0.0, 0.0]]
    """

    dimensions = 2


class ConstantPad3d(_ConstantPadNd):
    """`value` around the last 3 dimensions: see `ConstantPad2d`."""

    dimensions = 3


class ZeroPad1d(ConstantPad1d):
    """Zeros around the last dimension: see `ConstantPad2d`."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Zeros around the last 2 dimensions: see `ConstantPad2d`."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Zeros around the last 3 dimensions: see `ConstantPad2d`."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ReflectionPad1d(_ReflectionPadNd):
    """(N, C, L) or (C, L), mirrored at its ends, which are not repeated.

    >>> import tracejit
    >>> tracejit.nn.ReflectionPad1d((2, 0))(tracejit.arange(3.0).reshape(1, 3)).tolist()
    [[2.0, 1.0, 0.0, 1.0, 2.0]]
    """

    dimensions = 1


class ReflectionPad2d(_ReflectionPadNd):
    """(N, C, H, W) or (C, H, W), mirrored at its ends, which are not repeated."""

    dimensions = 2


class ReflectionPad3d(_ReflectionPadNd):
    """(N, C, D, H, W) or (C, D, H, W), mirrored at its ends, which are not repeated."""

    dimensions = 3


class ReplicationPad1d(_ReplicationPadNd):
    """(N, C, L) or (C, L), continued by its first and last elements.

    >>> import tracejit
    >>> tracejit.nn.ReplicationPad1d((2, 0))(tracejit.arange(3.0).reshape(1, 3)).tolist()
    [[0.0, 0.0, 0.0, 1.0, 2.0]]
    """

    dimensions = 1


class ReplicationPad2d(_ReplicationPadNd):
    """(N, C, H, W) or (C, H, W), continued by its first and last elements."""

    dimensions = 2


class ReplicationPad3d(_ReplicationPadNd):
    """(N, C, D, H, W) or (C, D, H, W), continued by its first and last elements."""

    dimensions = 3


class CircularPad1d(_CircularPadNd):
    """(N, C, L) or (C, L), continued by its other end.

    >>> import tracejit
    >>> tracejit.nn.CircularPad1d((2, 0))(tracejit.arange(3.0).reshape(1, 3)).tolist()
    [[1.0, 2.0, 0.0, 1.0, 2.0]]
    """

    dimensions = 1


class CircularPad2d(_CircularPadNd):
    """(N, C, H, W) or (C, H, W), continued by its other end."""

    dimensions = 2


class CircularPad3d(_CircularPadNd):
    """(N, C, D, H, W) or (C, D, H, W), continued by its other end."""

    dimensions = 3
