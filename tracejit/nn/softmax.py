"""Softmax and its kin as layers: shares that add up to 1 along a dimension.

In: scores. Out: a tensor of their shape. Each calls the function of `nn.functional` of its name.
"""

from __future__ import annotations

from typing import Any

from tracejit.nn import functional as F
from tracejit.nn.module import Module


class _AlongDim(Module):
    """Base class of functions along one dimension."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """Shares that add up to 1 along a dimension: exp(x_i) / sum_j exp(x_j).

    dim  dimension along which shares add up to 1; None warns and picks 0 for inputs of 0, 1 or 3
         dimensions, else 1

    Floating input of any shape; the output has the same shape and dtype, with elements in [0, 1].
    Raises IndexError for a dimension that the input lacks.

    >>> import tracejit
    >>> tracejit.nn.Softmax(dim=1)(tracejit.tensor([[0.0, 0.0], [0.0, 1.0]]))
    tensor([[0.5000, 0.5000],
            [0.2689, 0.7311]])
    """

    def forward(self, input: Any) -> Any:
        return F.softmax(input, self.dim)


class LogSoftmax(_AlongDim):
    """Logarithm of `Softmax`, more precise than taking it after: x_i - log(sum_j exp(x_j)).

    dim  dimension along which the shares add up to 1; None warns and picks 0 for inputs of 0, 1 or
         3 dimensions, else 1

    Floating input of any shape; the output has the same shape and dtype, and no positive elements.
    Raises IndexError for a dimension that the input lacks.

    >>> import tracejit
    >>> tracejit.nn.LogSoftmax(dim=0)(tracejit.tensor([0.0, 1.0]))
    tensor([-1.3133, -0.3133])
    """

    def forward(self, input: Any) -> Any:
        return F.log_softmax(input, self.dim)


class Softmin(Module):
    """Softmax of the negated input: exp(-x_i) / sum_j exp(-x_j). Small elements get large shares.

    dim  dimension along which shares add up to 1; None warns and picks 0 for inputs of 0, 1 or 3
         dimensions, else 1

    Floating input of any shape; the output has the same shape and dtype. Raises IndexError for a
    dimension that the input lacks.

    >>> import tracejit
    >>> tracejit.nn.Softmin(dim=0)(tracejit.tensor([0.0, 1.0]))
    tensor([0.7311, 0.2689])
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        return F.softmin(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax2d(Module):
    """Softmax over the channels at each place of an image.

    Floating input (N, C, H, W) or (C, H, W); the output has the same shape and dtype. Elements add
    up to 1 along C. The layer has no arguments and no parameters. Raises ValueError for inputs of
    other dimensions.

    >>> import tracejit
    >>> tracejit.nn.Softmax2d()(tracejit.zeros(2, 1, 2)).flatten()
    tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """

    def forward(self, input: Any) -> Any:
        if input.dim() not in (3, 4):
            found = input.dim()
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {found}D instead")
        return F.softmax(input, -3)
