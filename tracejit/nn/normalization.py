"""Layers that normalise each element of a batch by itself: over the last dimensions, groups of
channels, neighbouring channels.

In: tensors whose last dimensions are `normalized_shape`, or (N, C, ...). Out: tensors of the same
shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tracejit
from tracejit.nn import functional as F
from tracejit.nn import init
from tracejit.nn.module import Module
from tracejit.nn.parameter import Parameter


class LayerNorm(Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last dimensions.

    >>> import tracejit
    >>> tracejit.nn.LayerNorm(4)(tracejit.ones(2, 4)).tolist()[0]
    [0.0, 0.0, 0.0, 0.0]
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        kind = {"device": device, "dtype": dtype}
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            made = Parameter(tracejit.empty(self.normalized_shape, **kind)) if wanted else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weight to one, bias to zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Any) -> Any:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class GroupNorm(Module):
    """Normalisation to mean 0 and variance 1 over each group of channels of (N, C, ...), then
    weight and bias of each channel.

    >>> import tracejit
    >>> layer = tracejit.nn.GroupNorm(2, 4)
    >>> layer(tracejit.tensor([[1.0, 3.0, 5.0, 9.0]])).round().tolist()
    [[-1.0, 1.0, -1.0, 1.0]]

    ValueError where the channels do not divide into the groups.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        kind = {"device": device, "dtype": dtype}
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            made = Parameter(tracejit.empty(num_channels, **kind)) if wanted else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weight to one, bias to zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Any) -> Any:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """x / sqrt(mean of squares + eps) * weight over the last dimensions.

    eps  None: the smallest step from 1 in the dtype that computes

    >>> import tracejit
    >>> tracejit.nn.RMSNorm(2)(tracejit.tensor([1.0, 7.0])).tolist()
    [0.20000000298023224, 1.399999976158142]
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        made = tracejit.empty(self.normalized_shape, device=device, dtype=dtype)
        self.register_parameter("weight", Parameter(made) if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weight to one."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Any) -> Any:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}"
        )


class CrossMapLRN2d(Module):
    """Division of each element of (N, C, H, W) by (k + alpha / size * sum of squares) ** beta, over
    `size` channels around it.

    As in PyTorch the square of the first channel stays in the sum of all that follow. The gradient
    is that of this function; PyTorch's is another one.

    >>> import tracejit
    >>> tracejit.nn.CrossMapLRN2d(2)(tracejit.zeros(1, 3, 4, 4)).shape
    tracejit.Size([1, 3, 4, 4])

    Raises ValueError for inputs of other dimensions.
    """

    def __init__(
        self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1
    ) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Any) -> Any:
        if input.dim() != 4:
            raise ValueError(
                f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead."
            )
        squares, channels = input * input, input.shape[1]
        reach = int((self.size - 1) / 2 + 1)
        wide = F.pad(squares, (0, 0, 0, 0, reach - 1, reach - 1))
        total = wide.narrow(1, 0, channels)
        for k in range(1, 2 * reach - 1):
            total = total + wide.narrow(1, k, channels)
        # the first channel has left the window, but PyTorch's sum keeps it
        if channels > reach:
            first = squares.narrow(1, 0, 1).expand(-1, channels - reach, -1, -1)
            total = total + F.pad(first, (0, 0, 0, 0, reach, 0))
        return input * (self.k + self.alpha / self.size * total) ** -self.beta

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LocalResponseNorm(Module):
    """`F.local_response_norm` of (N, C, ...).

    >>> import tracejit
    >>> tracejit.nn.LocalResponseNorm(2)(tracejit.zeros(1, 3, 4)).shape
    tracejit.Size([1, 3, 4])
    """

    def __init__(
        self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
    ) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Any) -> Any:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
