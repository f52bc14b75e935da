"""Convolution layers in one to three dimensions, and their transposes.

In: (N, C, *spatial) or (C, *spatial). Out: tensors of as many dimensions with `out_channels`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tracejit
from tracejit.nn import functional as F
from tracejit.nn import init
from tracejit.nn.module import Module
from tracejit.nn.parameter import Parameter

_PADDING_MODES = {"zeros", "reflect", "replicate", "circular"}


def per_dimension(value: Any, count: int) -> tuple:
    """Return `value` for each of `count` dimensions, or the values that are given."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


class _ConvNd(Module):
    """Base class of convolution layers: numbers per dimension, a weight, perhaps a bias."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.dilation, self.transposed = dilation, transposed
        self.output_padding, self.padding_mode = output_padding, padding_mode
        self._check()
        self._reversed_padding_repeated_twice = self._amounts()
        kind = {"device": device, "dtype": dtype}
        self.weight = Parameter(tracejit.empty(self._weight_shape(), **kind))
        if bias:
            self.bias = Parameter(tracejit.empty(out_channels, **kind))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _check(self) -> None:
        if self.groups <= 0:
            raise ValueError("groups must be a positive integer")
        for name in ("in_channels", "out_channels"):
            if getattr(self, name) % self.groups:
                raise ValueError(f"{name} must be divisible by groups")
        if isinstance(self.padding, str):
            if self.padding not in ("same", "valid"):
                raise ValueError(
                    f"Invalid padding string {self.padding!r}, should be one of "
                    "{'valid', 'same'}"
                )
            if self.padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if self.padding_mode not in _PADDING_MODES:
            known = ", ".join(map(repr, sorted(_PADDING_MODES)))
            raise ValueError(
                f"padding_mode must be one of {{{known}}}, but got "
                f"padding_mode={self.padding_mode!r}"
            )

    def _weight_shape(self) -> tuple[int, ...]:
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        return (first, second // self.groups, *self.kernel_size)

    def reset_parameters(self) -> None:
        """Fill uniformly in +-1 / sqrt(elements of a window)."""
        # with this `a` the bound is 1 / sqrt(fan in)
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            inputs = self.weight.shape[1] * math.prod(self.kernel_size)
            if inputs != 0:
                bound = 1 / math.sqrt(inputs)
                init.uniform_(self.bias, -bound, bound)

    def _amounts(self) -> Sequence[int]:
        """Return the amounts that padding modes other than zeros add before and after, last
        dimension first."""
        if not isinstance(self.padding, str):
            return tuple(p for p in reversed(self.padding) for _ in range(2))
        if self.padding == "valid":
            return [0, 0] * len(self.kernel_size)
        total = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
        # an odd total: the larger half comes behind, as in PyTorch
        return [n for t in reversed(total) for n in (t // 2, t - t // 2)]

    def extra_repr(self) -> str:
        count = len(self.kernel_size)
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}",
            f"stride={self.stride}",
        ]
        if isinstance(self.padding, str) or any(self.padding):
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * count:
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * count:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Convolution(_ConvNd):
    """Base class of layers whose numbers may be given once for all dimensions."""

    dimensions: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: str | int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        count = self.dimensions
        super().__init__(
            in_channels, out_channels, per_dimension(kernel_size, count),
            per_dimension(stride, count),
            padding if isinstance(padding, str) else per_dimension(padding, count),
            per_dimension(dilation, count), False, (0,) * count, groups, bias, padding_mode, device,
            dtype,
        )  # fmt: skip

    def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
        """Run the layer with another weight and bias. Layers that compute theirs call it."""
        convolve = (F.conv1d, F.conv2d, F.conv3d)[self.dimensions - 1]
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            # the function itself pads with zeros only
            input, padding = F.pad(input, self._reversed_padding_repeated_twice,
                                   mode=self.padding_mode), 0
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Any) -> Any:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Convolution):
    """Convolution of sequences: out[n, c, l] = bias[c] + sum over i, k of weight[c, i, k] * x[n, i,
    l * stride + k * dilation].

    in_channels, out_channels  numbers of channels of input and output
    kernel_size, stride, dilation  ints; strides and dilation default to 1
    padding           zeros at both ends (default 0), "valid" (none) or "same" (the output's length
                      is the input's)
    groups            parts that the channels are divided into, each with weights of its own;
                      default 1
    bias              False: no bias is added; default True
    padding_mode      "zeros" (default), "reflect", "replicate" or "circular"

    Parameters: `weight` (out_channels, in_channels / groups, kernel_size) and `bias`
    (out_channels,), uniform in +-1 / sqrt(in_channels / groups * kernel_size). Input (N, C, L) or
    (C, L); output (N, out_channels, L') with L' = floor((L + 2 * padding - dilation * (kernel_size
    - 1) - 1) / stride) + 1. Raises ValueError where channels are not divisible by `groups`.

    >>> import tracejit
    >>> tracejit.nn.Conv1d(2, 4, 3)(tracejit.ones(5, 2, 8)).shape
    tracejit.Size([5, 4, 6])
    """

    dimensions = 1


class Conv2d(_Convolution):
    """Convolution of images: at each place the sum of a window times weights, as in `Conv1d`.

    in_channels, out_channels  numbers of channels of input and output
    kernel_size, stride, dilation  (height, width) or one int; strides and dilation default to 1
    padding           zeros at both ends (default 0), "valid" (none) or "same" (sizes stay)
    groups            parts that the channels are divided into, each with weights of its own;
                      default 1
    bias              False: no bias is added; default True
    padding_mode      "zeros" (default), "reflect", "replicate" or "circular"
    device, dtype     of the parameters

    Parameters: `weight` (out_channels, in_channels / groups, kH, kW) and `bias` (out_channels,),
    uniform in +-1 / sqrt(in_channels / groups * kH * kW). Input (N, C, H, W) or (C, H, W); output
    (N, out_channels, H', W') with sizes as in `Conv1d`. Raises ValueError where channels are not
    divisible by `groups`, for "same" with strides, and for unknown words.

    >>> import tracejit
    >>> tracejit.nn.Conv2d(3, 4, 3, stride=2, padding=1)(tracejit.ones(5, 3, 8, 8)).shape
    tracejit.Size([5, 4, 4, 4])
    """

    dimensions = 2


class Conv3d(_Convolution):
    """Convolution of volumes: at each place the sum of a window times weights, as in `Conv1d`.

    in_channels, out_channels  numbers of channels of input and output
    kernel_size, stride, dilation  (depth, height, width) or one int
    padding, groups, bias, padding_mode  as in `Conv2d`

    Parameters: `weight` (out_channels, in_channels / groups, kD, kH, kW) and `bias`
    (out_channels,). Input (N, C, D, H, W) or (C, D, H, W); output (N, out_channels, D', H', W')
    with sizes as in `Conv1d`. Errors are those of `Conv2d`.

    >>> import tracejit
    >>> tracejit.nn.Conv3d(2, 4, (1, 3, 3))(tracejit.ones(1, 2, 4, 8, 8)).shape
    tracejit.Size([1, 4, 4, 6, 6])
    """

    dimensions = 3


class _ConvTransposeNd(_ConvNd):
    """Base class of layers whose weight is (in_channels, out_channels / groups, *kernel)."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(
                f'Only "zeros" padding mode is supported for {type(self).__name__}'
            )
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, transposed,
            output_padding, groups, bias, padding_mode, device, dtype,
        )  # fmt: skip


class _Transposed(_ConvTransposeNd):
    """Base class of transposed layers whose numbers may be given once for all dimensions."""

    dimensions: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        count = self.dimensions
        super().__init__(
            in_channels, out_channels, per_dimension(kernel_size, count),
            per_dimension(stride, count), per_dimension(padding, count),
            per_dimension(dilation, count), True, per_dimension(output_padding, count), groups,
            bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _padding_for(self, sizes: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...]:
        """Return the output padding for outputs of the `wanted` sizes. Raise ValueError if there is
        none."""
        count = self.dimensions
        if len(wanted) == len(sizes):
            wanted = wanted[-count:]
        if len(wanted) != count:
            kind = type(self).__name__.replace("d", "D")
            raise ValueError(
                f"{kind}: for {count + 2}D input, output_size must have {count} or {count + 2} "
                f"elements (got {len(wanted)})"
            )
        spatial = sizes[-count:]
        assert not isinstance(self.padding, str), "transposed ones take numbers alone"
        least = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(
                spatial, self.stride, self.padding, self.dilation, self.kernel_size
            )
        ]
        # s neighbouring sizes have one and the same input size, since strides round down
        most = [n + s - 1 for n, s in zip(least, self.stride)]
        if any(not low <= n <= high for low, n, high in zip(least, wanted, most)):
            raise ValueError(
                f"requested an output size of {tuple(wanted)}, but valid sizes range from {least} "
                f"to {most} (for an input of {tracejit.Size(spatial)})"
            )
        return tuple(n - low for n, low in zip(wanted, least))

    def forward(self, input: Any, output_size: Sequence[int] | None = None) -> Any:
        functions = F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d
        output_padding = self.output_padding
        if output_size is not None:
            output_padding = self._padding_for(input.shape, output_size)
        return functions[self.dimensions - 1](
            input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups,
            self.dilation,
        )  # fmt: skip


class ConvTranspose1d(_Transposed):
    """Transposed convolution of sequences: the gradient of `Conv1d` by its input, which makes them
    longer.

    in_channels, out_channels  numbers of channels of input and output
    kernel_size, stride, padding, dilation  those of the convolution that it reverses
    output_padding    elements more at the end, less than stride or dilation; default 0
    groups, bias      as in `Conv1d`
    padding_mode      "zeros" only

    Parameters: `weight` (in_channels, out_channels / groups, kernel_size) and `bias`
    (out_channels,). Input (N, C, L) or (C, L); output (N, out_channels, L') with L' = (L - 1) *
    stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1. The call takes a
    wanted `output_size` instead of output_padding. Raises ValueError for sizes that strides cannot
    give.

    >>> import tracejit
    >>> tracejit.nn.ConvTranspose1d(3, 2, 2, stride=2)(tracejit.ones(5, 3, 4)).shape
    tracejit.Size([5, 2, 8])
    """

    dimensions = 1


class ConvTranspose2d(_Transposed):
    """Transposed convolution of images: the gradient of `Conv2d` by its input, which makes them
    larger.

    in_channels, out_channels  numbers of channels of input and output
    kernel_size, stride, padding, dilation  those of the convolution that it reverses
    output_padding    elements more at the end, less than stride or dilation; default 0
    groups, bias      as in `Conv2d`
    padding_mode      "zeros" only

    Parameters: `weight` (in_channels, out_channels / groups, kH, kW) and `bias` (out_channels,).
    Input (N, C, H, W) or (C, H, W); output (N, out_channels, H', W') with sizes as in
    `ConvTranspose1d`. The call takes a wanted `output_size` instead of output_padding. Raises
    ValueError for sizes that strides cannot give. The source is Zeiler et al., "Deconvolutional
    networks" (2010).

    >>> import tracejit
    >>> tracejit.nn.ConvTranspose2d(3, 2, 2, stride=2)(tracejit.ones(5, 3, 4, 4)).shape
    tracejit.Size([5, 2, 8, 8])
    """

    dimensions = 2


class ConvTranspose3d(_Transposed):
    """Transposed convolution of volumes: the gradient of `Conv3d` by its input, which makes them
    larger.

    in_channels, out_channels  numbers of channels of input and output
    kernel_size, stride, padding, output_padding, dilation  as in `ConvTranspose2d`; three ints or
                      one
    groups, bias, padding_mode  as in `ConvTranspose2d`

    Parameters: `weight` (in_channels, out_channels / groups, kD, kH, kW) and `bias`
    (out_channels,). Input (N, C, D, H, W) or (C, D, H, W); output (N, out_channels, D', H', W')
    with sizes as in `ConvTranspose1d`.

    >>> import tracejit
    >>> tracejit.nn.ConvTranspose3d(3, 2, 2, stride=2)(tracejit.ones(1, 3, 2, 2, 2)).shape
    tracejit.Size([1, 2, 4, 4, 4])
    """

    dimensions = 3
