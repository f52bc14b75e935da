"""Windows of images as columns, and images of columns, as layers.

In: (N, C, H, W), or (N, C * window, windows). Out: the other of the two.
"""

from __future__ import annotations

from typing import Any

from tracejit.nn import functional as F
from tracejit.nn.module import Module


class Unfold(Module):
    """Windows of images as columns (im2col): each column holds one window.

    kernel_size  (height, width) of windows, or one int
    dilation     steps between elements of a window; default 1
    padding      zeros at both ends of each dimension; default 0
    stride       steps between windows; default 1

    Input (N, C, H, W) or (C, H, W); output (N, C * kH * kW, L), L being the number of windows.
    Raises RuntimeError where no window fits.

    >>> import tracejit
    >>> tracejit.nn.Unfold(2, stride=2)(tracejit.ones(1, 3, 4, 6)).shape
    tracejit.Size([1, 12, 6])
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
                 stride: Any = 1) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Any) -> Any:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (f"kernel_size={self.kernel_size}, dilation={self.dilation}, "
                f"padding={self.padding}, stride={self.stride}")


class Fold(Module):
    """Images from columns (col2im): each column is put back as a window, and windows that overlap
    are added up.

    output_size       (H, W) of the images, or one int
    kernel_size, dilation, padding, stride  windows as in `Unfold`; defaults 1, 0 and 1 for the last
                      three

    Input (N, C * kH * kW, L) or (C * kH * kW, L); output (N, C, H, W) or (C, H, W). Raises
    RuntimeError where the sizes do not match L windows.

    >>> import tracejit
    >>> tracejit.nn.Fold((4, 6), 2, stride=2)(tracejit.ones(1, 12, 6)).shape
    tracejit.Size([1, 3, 4, 6])
    """

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
                 stride: Any = 1) -> None:  # fmt: skip
        super().__init__()
        self.output_size, self.kernel_size, self.dilation = output_size, kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Any) -> Any:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding,
                      self.stride)  # fmt: skip

    def extra_repr(self) -> str:
        return (f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
                f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}")
