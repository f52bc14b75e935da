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
    """Dropout of elements: in training each becomes 0 with probability p, and the others are scaled
    by 1 / (1 - p). In evaluation the layer returns its input.

    p        probability, from 0 to 1; default 0.5
    inplace  True: write the result into the input; default False

    Floating input of any shape; the output has the same shape and dtype. Elements are drawn from
    the default generator. Raises ValueError for p outside [0, 1]. The source is Srivastava et al.,
    "Dropout: a simple way to prevent neural networks from overfitting" (2014).

    >>> import tracejit
    >>> tracejit.nn.Dropout(1.0)(tracejit.ones(2))
    tensor([0., 0.])
    >>> tracejit.nn.Dropout(0.5).eval()(tracejit.ones(2))
    tensor([1., 1.])
    """

    def forward(self, input: Any) -> Any:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Dropout of whole channels of sequences: in training each becomes 0 with probability p, and
    the others are scaled by 1 / (1 - p).

    p        probability, from 0 to 1; default 0.5
    inplace  True: write the result into the input; default False

    Input (N, C, L) or (C, L); the output has the same shape and dtype. Raises ValueError for p
    outside [0, 1], RuntimeError for inputs of other dimensions.

    >>> import tracejit
    >>> tracejit.nn.Dropout1d(1.0)(tracejit.ones(1, 2, 3)).sum().item()
    0.0
    """

    def forward(self, input: Any) -> Any:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Dropout of whole channels of images: in training each becomes 0 with probability p, and the
    others are scaled by 1 / (1 - p).

    p        probability, from 0 to 1; default 0.5
    inplace  True: write the result into the input; default False

    Input (N, C, H, W); the output has the same shape and dtype. Inputs of other dimensions warn.
    Raises ValueError for p outside [0, 1]. The source is Tompson et al., "Efficient object
    localization using convolutional networks" (2015).

    >>> import tracejit
    >>> tracejit.nn.Dropout2d(1.0)(tracejit.ones(1, 2, 3, 3)).sum().item()
    0.0
    """

    def forward(self, input: Any) -> Any:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Dropout of whole channels of volumes: in training each becomes 0 with probability p, and the
    others are scaled by 1 / (1 - p).

    p        probability, from 0 to 1; default 0.5
    inplace  True: write the result into the input; default False

    Input (N, C, D, H, W) or (C, D, H, W); the output has the same shape and dtype. Inputs of other
    dimensions warn. Raises ValueError for p outside [0, 1].

    >>> import tracejit
    >>> tracejit.nn.Dropout3d(1.0)(tracejit.ones(1, 2, 3, 3, 3)).sum().item()
    0.0
    """

    def forward(self, input: Any) -> Any:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout for `SELU` networks, which keeps mean 0 and variance 1. Elements that drop out take
    the limit of SELU at minus infinity; then all are scaled and shifted.

    p        probability that an element drops out, from 0 to 1; default 0.5
    inplace  True: write the result into the input; default False

    Floating input of any shape; the output has the same shape and dtype. Raises ValueError for p
    outside [0, 1]. The source is Klambauer et al., "Self-normalizing neural networks" (2017).

    >>> import tracejit
    >>> tracejit.nn.AlphaDropout(0.5).eval()(tracejit.ones(2))
    tensor([1., 1.])
    """

    def forward(self, input: Any) -> Any:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of whole channels: all elements of a channel drop out together.

    p        probability that a channel drops out, from 0 to 1; default 0.5
    inplace  True: write the result into the input; default False

    Floating input (N, C, *); the output has the same shape and dtype. In evaluation the layer
    returns its input. Raises ValueError for p outside [0, 1].

    >>> import tracejit
    >>> tracejit.nn.FeatureAlphaDropout(0.5).eval()(tracejit.ones(1, 2, 3)).shape
    tracejit.Size([1, 2, 3])
    """

    def forward(self, input: Any) -> Any:
        return F.feature_alpha_dropout(input, self.p, self.training)
