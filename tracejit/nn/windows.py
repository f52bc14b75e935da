"""Windows of images as columns, and images of columns, as layers.

In: (N, C, H, W), or (N, C * window, windows). Out: the other of the two.
"""

from __future__ import annotations

from typing import Any

from tracejit.nn import functional as F
from tracejit.nn.module import Module


class Unfold(Module):
    """Every window of (N, C, H, W) as a column: (N, C * window, windows).

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
    """Image (N, C, *output_size) from columns; windows that overlap are added up.

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
