"""Layers that leave elements, or whole channels, out of a training step.

In: any tensors; those that leave out channels take (N, C, ...). Out: tensors of the same shape. In
evaluation they do nothing.
"""

from __future__ import annotations

from typing import Any

from tracejit.nn import functional as F
from tracejit.nn.module import Module


class _DropoutNd(Module):
    """Base class of dropout layers. `inplace` changes the input itself.

    Raises ValueError where p is not in [0, 1].
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Dropout of elements. While training, each is zero with probability p, and the others are
    scaled by 1 / (1 - p).

    >>> import tracejit
    >>> tracejit.nn.Dropout(1.0)(tracejit.ones(2)).tolist()
    [0.0, 0.0]
    """

    def forward(self, input: Any) -> Any:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Dropout of channels: each of (N, C, L) or (C, L) is zero with probability p."""

    def forward(self, input: Any) -> Any:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Dropout of channels: each of (N, C, H, W) is zero with probability p."""

    def forward(self, input: Any) -> Any:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Dropout of channels: each of (N, C, D, H, W) is zero with probability p."""

    def forward(self, input: Any) -> Any:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean and variance of self-normalising networks (`SELU`)."""

    def forward(self, input: Any) -> Any:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of whole channels."""

    def forward(self, input: Any) -> Any:
        return F.feature_alpha_dropout(input, self.p, self.training)
