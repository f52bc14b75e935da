"""Layers that put maxima back where they were, in one to three dimensions.

In: maxima of windows and their places. Out: tensors of the size before pooling. Each calls the
function of `nn.functional` of its name.
"""

from __future__ import annotations

from typing import Any

from tracejit.nn import functional as F
from tracejit.nn.module import Module


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
    """Maxima of windows put back where they were, among zeros: a partial inverse of `MaxPool1d`.

    kernel_size, stride, padding  those of the pooling

    Inputs: maxima (N, C, L) or (C, L), and their `indices` of the same shape, int64. Output (N, C,
    L') with L' = (L - 1) * stride - 2 * padding + kernel_size, or as `output_size` of the call
    says. Raises ValueError for a size that the pooling cannot have had.

    >>> import tracejit
    >>> pool, back = tracejit.nn.MaxPool1d(2, return_indices=True), tracejit.nn.MaxUnpool1d(2)
    >>> back(*pool(tracejit.tensor([[1.0, 3.0, 2.0, 0.0]])))
    tensor([[0., 3., 2., 0.]])
    """

    dimensions = 1

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding,
                              output_size)  # fmt: skip


class MaxUnpool2d(_MaxUnpoolNd):
    """Maxima of windows put back where they were, among zeros: a partial inverse of `MaxPool2d`.

    kernel_size, stride, padding  those of the pooling; two ints or one

    Inputs: maxima (N, C, H, W) or (C, H, W), and their `indices` of the same shape, int64. Output
    (N, C, H', W') with sizes as in `MaxUnpool1d`, or as `output_size` of the call says. Raises
    ValueError for sizes that the pooling cannot have had.

    >>> import tracejit
    >>> pool, back = tracejit.nn.MaxPool2d(2, return_indices=True), tracejit.nn.MaxUnpool2d(2)
    >>> back(*pool(tracejit.arange(4.0).reshape(1, 2, 2)))
    tensor([[[0., 0.],
             [0., 3.]]])
    """

    dimensions = 2

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding,
                              output_size)  # fmt: skip


class MaxUnpool3d(_MaxUnpoolNd):
    """Maxima of windows put back where they were, among zeros: a partial inverse of `MaxPool3d`.

    kernel_size, stride, padding  those of the pooling; three ints or one

    Inputs: maxima (N, C, D, H, W) or (C, D, H, W), and their `indices` of the same shape, int64.
    Output (N, C, D', H', W') with sizes as in `MaxUnpool1d`, or as `output_size` of the call says.

    >>> import tracejit
    >>> pool, back = tracejit.nn.MaxPool3d(2, return_indices=True), tracejit.nn.MaxUnpool3d(2)
    >>> back(*pool(tracejit.ones(1, 2, 4, 4, 4))).shape
    tracejit.Size([1, 2, 4, 4, 4])
    """

    dimensions = 3

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding,
                              output_size)  # fmt: skip
