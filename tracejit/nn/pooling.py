"""Pooling layers in one to three dimensions.

In: (N, C, *spatial) or (C, *spatial). Out: tensors of as many dimensions. Each calls the function
of `nn.functional` of its name.
"""

from __future__ import annotations

from typing import Any

from tracejit.nn import functional as F
from tracejit.nn.module import Module


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
    """Largest element of each window of (N, C, L): see `MaxPool2d`."""

    def forward(self, input: Any) -> Any:
        return F.max_pool1d(input, self.kernel_size, self.stride, self.padding, self.dilation,
                            self.ceil_mode, self.return_indices)  # fmt: skip


class MaxPool2d(_MaxPoolNd):
    """Largest element of each window of (N, C, H, W).

    return_indices  returns their places in H * W too; others as in `nn.functional.max_pool2d`

    >>> import tracejit
    >>> tracejit.nn.MaxPool2d(3, stride=2)(tracejit.ones(1, 2, 7, 7)).shape
    tracejit.Size([1, 2, 3, 3])
    """

    def forward(self, input: Any) -> Any:
        return F.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation,
                            self.ceil_mode, self.return_indices)  # fmt: skip


class MaxPool3d(_MaxPoolNd):
    """Largest element of each window of (N, C, D, H, W): see `MaxPool2d`."""

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
    """Mean of each window of (N, C, L): see `AvgPool2d`."""

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
    """Mean of each window of (N, C, H, W); options as in `nn.functional.avg_pool2d`.

    >>> import tracejit
    >>> tracejit.nn.AvgPool2d(2)(tracejit.ones(1, 2, 6, 8)).shape
    tracejit.Size([1, 2, 3, 4])
    """

    def forward(self, input: Any) -> Any:
        return F.avg_pool2d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad, self.divisor_override)  # fmt: skip


class AvgPool3d(_AvgPoolNd):
    """Mean of each window of (N, C, D, H, W): see `AvgPool2d`."""

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
    """(N, C, L) to (N, C, *output_size), as means of windows: see `AdaptiveAvgPool2d`."""

    def forward(self, input: Any) -> Any:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """(N, C, H, W) to (N, C, *output_size), as means of windows; None keeps a size.

    >>> import tracejit
    >>> tracejit.nn.AdaptiveAvgPool2d((3, None))(tracejit.ones(1, 2, 7, 5)).shape
    tracejit.Size([1, 2, 3, 5])
    """

    def forward(self, input: Any) -> Any:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """(N, C, D, H, W) to (N, C, *output_size), as means of windows: see `AdaptiveAvgPool2d`."""

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
    """(N, C, L) to (N, C, *output_size), as maxima of windows: see `AdaptiveMaxPool2d`."""

    def forward(self, input: Any) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """(N, C, H, W) to (N, C, *output_size), as maxima of windows; None keeps a size.

    return_indices  also where in H * W they are

    >>> import tracejit
    >>> tracejit.nn.AdaptiveMaxPool2d(3)(tracejit.ones(1, 2, 7, 5)).shape
    tracejit.Size([1, 2, 3, 3])
    """

    def forward(self, input: Any) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """(N, C, D, H, W) to (N, C, *output_size), as maxima of windows: see `AdaptiveMaxPool2d`."""

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
    """Norm of each window of (N, C, L); options as in `nn.functional.lp_pool1d`."""

    def forward(self, input: Any) -> Any:
        return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride,
                           self.ceil_mode)  # fmt: skip


class LPPool2d(_LPPoolNd):
    """Norm of each window of (N, C, H, W); options as in `nn.functional.lp_pool2d`."""

    def forward(self, input: Any) -> Any:
        return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride,
                           self.ceil_mode)  # fmt: skip


class LPPool3d(_LPPoolNd):
    """Norm of each window of (N, C, D, H, W); options as in `nn.functional.lp_pool3d`."""

    def forward(self, input: Any) -> Any:
        return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride,
                           self.ceil_mode)  # fmt: skip


class _MaxUnpoolNd(Module):
    """Options of the windows that maxima are of."""

    dimensions: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = self._each(kernel_size)
        self.stride = self._each(kernel_size if stride is None else stride)
        self.padding = self._each(padding)

    def _each(self, value: Any) -> tuple:
        return tuple(value) if isinstance(value, (tuple, list)) else (value,) * self.dimensions

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Maxima of windows of (N, C, L) put back where they were, among zeros."""

    dimensions = 1

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding,
                              output_size)  # fmt: skip


class MaxUnpool2d(_MaxUnpoolNd):
    """Maxima of windows of (N, C, H, W) put back where they were, among zeros."""

    dimensions = 2

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding,
                              output_size)  # fmt: skip


class MaxUnpool3d(_MaxUnpoolNd):
    """Maxima of windows of (N, C, D, H, W) put back where they were, among zeros."""

    dimensions = 3

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding,
                              output_size)  # fmt: skip


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
    """`F.fractional_max_pool2d` of (N, C, H, W).

    >>> import tracejit
    >>> tracejit.nn.FractionalMaxPool2d(2, output_ratio=0.5)(tracejit.ones(1, 3, 8, 6)).shape
    tracejit.Size([1, 3, 4, 3])

    ValueError unless exactly one of size and ratio is given.
    """

    dimensions = 2

    def forward(self, input: Any) -> Any:
        return F.fractional_max_pool2d(input, self.kernel_size, self.output_size,
                                       self.output_ratio, self.return_indices,
                                       self._random_samples)  # fmt: skip


class FractionalMaxPool3d(_FractionalMaxPool):
    """`F.fractional_max_pool3d` of (N, C, D, H, W): see `FractionalMaxPool2d`."""

    dimensions = 3

    def forward(self, input: Any) -> Any:
        return F.fractional_max_pool3d(input, self.kernel_size, self.output_size,
                                       self.output_ratio, self.return_indices,
                                       self._random_samples)  # fmt: skip
