"""Pooling layers in one to three dimensions.

In: (N, C, *spatial) or (C, *spatial). Out: tensors of as many dimensions. Each calls the function
of `nn.functional` of its name.
"""

from __future__ import annotations

from typing import Any

from tracejit.nn import functional as F
from tracejit.nn.module import Module
from tracejit.nn.unpooling import (  # noqa: F401 (saved modules name them here)
    MaxUnpool1d,
    MaxUnpool2d,
    MaxUnpool3d,
    _MaxUnpoolNd,
)


class _MaxPoolNd(Module):
    """Options of maxima of windows."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                 return_indices: bool = False, ceil_mode: bool = False) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def extra_repr(self) -> str:
        return (f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
                f"dilation={self.dilation}, ceil_mode={self.ceil_mode}")


class MaxPool1d(_MaxPoolNd):
    """Largest element of each window of sequences.

    kernel_size, stride  length of windows, and steps between them (None: that length)
    padding           minus infinity at both ends, at most half a window; default 0
    dilation          steps between elements of a window; default 1
    return_indices    True: return also where in L the maxima are, as int64
    ceil_mode         True: a last window may reach past the end

    Input (N, C, L) or (C, L); output (N, C, L') with L' = floor((L + 2 * padding - dilation *
    (kernel_size - 1) - 1) / stride) + 1. Raises RuntimeError for options out of range.

    >>> import tracejit
    >>> tracejit.nn.MaxPool1d(2)(tracejit.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """

    def forward(self, input: Any) -> Any:
        return F.max_pool1d(input, self.kernel_size, self.stride, self.padding, self.dilation,
                            self.ceil_mode, self.return_indices)  # fmt: skip


class MaxPool2d(_MaxPoolNd):
    """Largest element of each window of images.

    kernel_size, stride  (height, width) or one int; stride None is kernel_size
    padding           minus infinity at both ends, at most half a window; default 0
    dilation          steps between elements of a window; default 1
    return_indices    True: return also where in H * W the maxima are, as int64
    ceil_mode         True: last windows may reach past the end

    Input (N, C, H, W) or (C, H, W); output (N, C, H', W') with sizes as in `MaxPool1d`. Raises
    RuntimeError for options out of range.

    >>> import tracejit
    >>> tracejit.nn.MaxPool2d(3, stride=2)(tracejit.ones(1, 2, 7, 7)).shape
    tracejit.Size([1, 2, 3, 3])
    """

    def forward(self, input: Any) -> Any:
        return F.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation,
                            self.ceil_mode, self.return_indices)  # fmt: skip


class MaxPool3d(_MaxPoolNd):
    """Largest element of each window of volumes.

    kernel_size, stride, padding, dilation  as in `MaxPool1d`; three ints or one
    return_indices    True: return also where in D * H * W the maxima are, as int64
    ceil_mode         True: last windows may reach past the end

    Input (N, C, D, H, W) or (C, D, H, W); output (N, C, D', H', W'). Raises RuntimeError for
    options out of range.

    >>> import tracejit
    >>> tracejit.nn.MaxPool3d(2)(tracejit.ones(1, 2, 4, 6, 8)).shape
    tracejit.Size([1, 2, 2, 3, 4])
    """

    def forward(self, input: Any) -> Any:
        return F.max_pool3d(input, self.kernel_size, self.stride, self.padding, self.dilation,
                            self.ceil_mode, self.return_indices)  # fmt: skip


class _AvgPoolNd(Module):
    """Options of means of windows."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True,
                 divisor_override: int | None = None) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """Mean of each window of sequences.

    kernel_size, stride  length of windows, and steps between them (None: that length)
    padding           zeros at both ends, at most half a window; default 0
    ceil_mode         True: a last window may reach past the end
    count_include_pad  False: the zeros do not count in the means

    Input (N, C, L) or (C, L); output (N, C, L') with L' = floor((L + 2 * padding - kernel_size) /
    stride) + 1. Raises RuntimeError for options out of range.

    >>> import tracejit
    >>> tracejit.nn.AvgPool1d(2)(tracejit.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True) -> None:  # fmt: skip
        # not the base class's: here PyTorch keeps tuples, and has no divisor
        Module.__init__(self)
        self.kernel_size = _single(kernel_size)
        self.stride = self.kernel_size if stride is None else _single(stride)
        self.padding = _single(padding)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Any) -> Any:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad)  # fmt: skip


def _single(value: Any) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


class AvgPool2d(_AvgPoolNd):
    """Mean of each window of images.

    kernel_size, stride  (height, width) or one int; stride None is kernel_size
    padding           zeros at both ends, at most half a window; default 0
    ceil_mode         True: last windows may reach past the end
    count_include_pad  False: the zeros do not count in the means
    divisor_override  number that sums are divided by instead

    Input (N, C, H, W) or (C, H, W); output (N, C, H', W') with sizes as in `AvgPool1d`. Raises
    RuntimeError for options out of range.

    >>> import tracejit
    >>> tracejit.nn.AvgPool2d(2)(tracejit.ones(1, 2, 6, 8)).shape
    tracejit.Size([1, 2, 3, 4])
    """

    def forward(self, input: Any) -> Any:
        return F.avg_pool2d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad, self.divisor_override)  # fmt: skip


class AvgPool3d(_AvgPoolNd):
    """Mean of each window of volumes.

    kernel_size, stride, padding  as in `AvgPool1d`; three ints or one
    ceil_mode, count_include_pad, divisor_override  as in `AvgPool2d`

    Input (N, C, D, H, W) or (C, D, H, W); output (N, C, D', H', W'). Raises RuntimeError for
    options out of range.

    >>> import tracejit
    >>> tracejit.nn.AvgPool3d(2)(tracejit.ones(1, 2, 4, 6, 8)).shape
    tracejit.Size([1, 2, 2, 3, 4])
    """

    def forward(self, input: Any) -> Any:
        return F.avg_pool3d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad, self.divisor_override)  # fmt: skip


class _AdaptiveAvgPoolNd(Module):
    """Means of as many windows as are asked for."""

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means of as many windows as are asked for: window i covers floor(i * L / n) up to ceil((i +
    1) * L / n).

    output_size  number n of windows

    Input (N, C, L) or (C, L); output (N, C, n) or (C, n) of the same dtype. The layer holds no
    parameters. Raises RuntimeError for inputs of other dimensions.

    >>> import tracejit
    >>> tracejit.nn.AdaptiveAvgPool1d(2)(tracejit.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    def forward(self, input: Any) -> Any:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Means of as many windows of images as are asked for, placed as in `AdaptiveAvgPool1d`.

    output_size  (height, width) of the output, or one int; None keeps a size

    Input (N, C, H, W) or (C, H, W); output (N, C, *output_size) of the same dtype. The layer holds
    no parameters. Raises RuntimeError for inputs of other dimensions.

    >>> import tracejit
    >>> tracejit.nn.AdaptiveAvgPool2d((3, None))(tracejit.ones(1, 2, 7, 5)).shape
    tracejit.Size([1, 2, 3, 5])
    """

    def forward(self, input: Any) -> Any:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Means of as many windows of volumes as are asked for, placed as in `AdaptiveAvgPool1d`.

    output_size  (depth, height, width) of the output, or one int; None keeps a size

    Input (N, C, D, H, W) or (C, D, H, W); output (N, C, *output_size) of the same dtype. The layer
    holds no parameters.

    >>> import tracejit
    >>> tracejit.nn.AdaptiveAvgPool3d(2)(tracejit.ones(1, 2, 4, 6, 8)).shape
    tracejit.Size([1, 2, 2, 2, 2])
    """

    def forward(self, input: Any) -> Any:
        return F.adaptive_avg_pool3d(input, self.output_size)


class _AdaptiveMaxPoolNd(Module):
    """Maxima of as many windows as are asked for."""

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Largest elements of as many windows as are asked for, placed as in `AdaptiveAvgPool1d`.

    output_size     number n of windows
    return_indices  True: return also where in L the maxima are, as int64

    Input (N, C, L) or (C, L); output (N, C, n) or (C, n) of the same dtype. The layer holds no
    parameters. Raises RuntimeError for inputs of other dimensions.

    >>> import tracejit
    >>> tracejit.nn.AdaptiveMaxPool1d(2)(tracejit.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """

    def forward(self, input: Any) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Largest elements of as many windows of images as are asked for, placed as in
    `AdaptiveAvgPool1d`.

    output_size     (height, width) of the output, or one int; None keeps a size
    return_indices  True: return also where in H * W the maxima are, as int64

    Input (N, C, H, W) or (C, H, W); output (N, C, *output_size) of the same dtype. Raises
    RuntimeError for inputs of other dimensions.

    >>> import tracejit
    >>> tracejit.nn.AdaptiveMaxPool2d(3)(tracejit.ones(1, 2, 7, 5)).shape
    tracejit.Size([1, 2, 3, 3])
    """

    def forward(self, input: Any) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Largest elements of as many windows of volumes as are asked for, placed as in
    `AdaptiveAvgPool1d`.

    output_size     (depth, height, width) of the output, or one int; None keeps a size
    return_indices  True: return also where in D * H * W the maxima are, as int64

    Input (N, C, D, H, W) or (C, D, H, W); output (N, C, *output_size) of the same dtype.

    >>> import tracejit
    >>> tracejit.nn.AdaptiveMaxPool3d(2)(tracejit.ones(1, 2, 4, 6, 8)).shape
    tracejit.Size([1, 2, 2, 2, 2])
    """

    def forward(self, input: Any) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _LPPoolNd(Module):
    """Options of norms of windows."""

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None,
                 ceil_mode: bool = False) -> None:  # fmt: skip
        super().__init__()
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride, self.ceil_mode = stride, ceil_mode

    def extra_repr(self) -> str:
        return (f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, "
                f"stride={self.stride}, ceil_mode={self.ceil_mode}")


class LPPool1d(_LPPoolNd):
    """Norm of each window of sequences: (sum x^p)^(1/p).

    norm_type         the order p, a number other than 0
    kernel_size, stride  length of windows, and steps between them (None: that length)
    ceil_mode         True: a last window may reach past the end

    Input (N, C, L) or (C, L); output (N, C, L') with L' = floor((L - kernel_size) / stride) + 1.
    With an odd p above 1, negative sums give NaN.

    >>> import tracejit
    >>> tracejit.nn.LPPool1d(2, 2)(tracejit.tensor([[3.0, 4.0, 0.0, 1.0]]))
    tensor([[5., 1.]])
    """

    def forward(self, input: Any) -> Any:
        return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride,
                           self.ceil_mode)  # fmt: skip


class LPPool2d(_LPPoolNd):
    """Norm of each window of images: (sum x^p)^(1/p).

    norm_type         the order p, a number other than 0
    kernel_size, stride  (height, width) or one int; stride None is kernel_size
    ceil_mode         True: last windows may reach past the end

    Input (N, C, H, W) or (C, H, W); output (N, C, H', W') with sizes as in `LPPool1d`.

    >>> import tracejit
    >>> tracejit.nn.LPPool2d(2, 2)(tracejit.ones(1, 1, 2, 4)).flatten()
    tensor([2., 2.])
    """

    def forward(self, input: Any) -> Any:
        return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride,
                           self.ceil_mode)  # fmt: skip


class LPPool3d(_LPPoolNd):
    """Norm of each window of volumes: (sum x^p)^(1/p).

    norm_type         the order p, a number other than 0
    kernel_size, stride  (depth, height, width) or one int; stride None is kernel_size
    ceil_mode         True: last windows may reach past the end

    Input (N, C, D, H, W) or (C, D, H, W); output (N, C, D', H', W') with sizes as in `LPPool1d`.

    >>> import tracejit
    >>> tracejit.nn.LPPool3d(1, 2)(tracejit.ones(1, 1, 2, 2, 4)).flatten()
    tensor([8., 8.])
    """

    def forward(self, input: Any) -> Any:
        return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride,
                           self.ceil_mode)  # fmt: skip


class _FractionalMaxPool(Module):
    """Largest elements of windows whose steps are drawn at random."""

    dimensions: int
    _random_samples: Any

    def __init__(self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                 return_indices: bool = False, _random_samples: Any = None) -> None:  # fmt: skip
        super().__init__()
        name, n = type(self).__name__, self.dimensions
        self.kernel_size = _several(kernel_size, n)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else _several(output_size, n)
        self.output_ratio = None if output_ratio is None else _several(output_ratio, n)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling "
                             "ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")


def _several(given: Any, n: int) -> tuple:
    return tuple(given) if isinstance(given, (tuple, list)) else (given,) * n


class FractionalMaxPool2d(_FractionalMaxPool):
    """Largest elements of windows whose steps are drawn at random, so that sizes shrink by any
    factor.

    kernel_size     (height, width) of windows, or one int
    output_size     (height, width) of the output, or one int
    output_ratio    factor of sizes instead, between 0 and 1; two numbers or one
    return_indices  True: return also where in H * W the maxima are, as int64

    Input (N, C, H, W) or (C, H, W); output (N, C, *output_size). Raises ValueError unless exactly
    one of size and ratio is given. The source is Graham, "Fractional max-pooling" (2014).

    >>> import tracejit
    >>> tracejit.nn.FractionalMaxPool2d(2, output_ratio=0.5)(tracejit.ones(1, 3, 8, 6)).shape
    tracejit.Size([1, 3, 4, 3])
    """

    dimensions = 2

    def forward(self, input: Any) -> Any:
        return F.fractional_max_pool2d(input, self.kernel_size, self.output_size,
                                       self.output_ratio, self.return_indices,
                                       self._random_samples)  # fmt: skip


class FractionalMaxPool3d(_FractionalMaxPool):
    """Largest elements of windows of volumes whose steps are drawn at random: see
    `FractionalMaxPool2d`.

    kernel_size     (depth, height, width) of windows, or one int
    output_size     (depth, height, width) of the output, or one int
    output_ratio    factor of sizes instead, between 0 and 1; three numbers or one
    return_indices  True: return also where in D * H * W the maxima are, as int64

    Input (N, C, D, H, W) or (C, D, H, W); output (N, C, *output_size). Raises ValueError unless
    exactly one of size and ratio is given.

    >>> import tracejit
    >>> tracejit.nn.FractionalMaxPool3d(2, output_size=3)(tracejit.ones(1, 3, 8, 6, 7)).shape
    tracejit.Size([1, 3, 3, 3, 3])
    """

    dimensions = 3

    def forward(self, input: Any) -> Any:
        return F.fractional_max_pool3d(input, self.kernel_size, self.output_size,
                                       self.output_ratio, self.return_indices,
                                       self._random_samples)  # fmt: skip
