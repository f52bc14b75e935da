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
    """Normalisation over the last dimensions: (x - mean) / sqrt(variance + eps) * weight + bias.

    normalized_shape  sizes of these dimensions, or one int for the last
    eps               number added to the variance, which divides by n; default 1e-5
    elementwise_affine  False: no weight and bias; default True
    bias              False: no bias is added; default True
    device, dtype     of the parameters

    Parameters `weight` (ones) and `bias` (zeros) have the shape `normalized_shape`. Input (*,
    *normalized_shape), floating; the output has the same shape and dtype. Raises RuntimeError where
    the last sizes differ. The source is Ba, Kiros and Hinton, "Layer normalization" (2016).

    >>> import tracejit
    >>> tracejit.nn.LayerNorm(2)(tracejit.tensor([[1.0, 3.0]])).round().tolist()
    [[-1.0, 1.0]]
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
    """Normalisation over groups of channels: (x - mean) / sqrt(variance + eps) * weight + bias,
    with statistics of each group of each sample.

    num_groups    number of groups; divides the number of channels
    num_channels  number C of channels
    eps           number added to the variance; default 1e-5
    affine        False: no weight and bias; default True
    bias          False: no bias is added; keyword only, default True

    Parameters `weight` (ones) and `bias` (zeros) are (C,). Input (N, C, *), floating; the output
    has the same shape and dtype. Raises ValueError where the channels do not divide into the
    groups. The source is Wu and He, "Group normalization" (2018).

    >>> import tracejit
    >>> layer = tracejit.nn.GroupNorm(2, 4)
    >>> layer(tracejit.tensor([[1.0, 3.0, 5.0, 9.0]])).round().tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
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
    """Division by the root mean square over the last dimensions: x / sqrt(mean(x^2) + eps) *
    weight.

    normalized_shape  sizes of these dimensions, or one int for the last
    eps               number added to the mean of squares; None (default): the smallest step from 1
                      in the dtype that computes
    elementwise_affine  False: no weight; default True

    `weight` is a parameter of ones of the shape `normalized_shape`. Input (*, *normalized_shape),
    floating; the output has the same shape and dtype. Raises RuntimeError where the last sizes
    differ. The source is Zhang and Sennrich, "Root mean square layer normalization" (2019).

    >>> import tracejit
    >>> tracejit.nn.RMSNorm(2)(tracejit.tensor([1.0, 7.0]))
    tensor([0.2000, 1.4000], grad_fn=<MulBackward0>)
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
    """Division of each element by (k + alpha / size * sum of squares)^beta, over `size` channels
    around it.

    size            number of channels in a sum
    alpha, beta, k  numbers of the formula; defaults 1e-4, 0.75 and 1

    Input (N, C, H, W); the output has the same shape. Raises ValueError for inputs of other
    dimensions. As in PyTorch the square of the first channel stays in the sum of all that follow.
    The gradient is that of this function; PyTorch's is another one. `LocalResponseNorm` has no such
    fault.

    >>> import tracejit
    >>> tracejit.nn.CrossMapLRN2d(2)(tracejit.zeros(1, 3, 4, 4)).shape
    tracejit.Size([1, 3, 4, 4])
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
    """Division of each element by (k + alpha * mean of squares)^beta, over `size` channels around
    it.

    size            number of channels in a mean; those beyond the ends count as 0
    alpha, beta, k  numbers of the formula; defaults 1e-4, 0.75 and 1

    Input (N, C, *), floating; the output has the same shape and dtype. The layer holds no
    parameters. Raises ValueError for inputs under 3 dimensions. The source is Krizhevsky, Sutskever
    and Hinton, "ImageNet classification" (2012).

    >>> import tracejit
    >>> tracejit.nn.LocalResponseNorm(2, alpha=1.0)(tracejit.ones(1, 2, 1)).flatten()
    tensor([0.7378, 0.5946])
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
