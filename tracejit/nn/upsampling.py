"""Layers that give images another size.

In: (N, C, *spatial). Out: tensors of as many dimensions. They call `nn.functional.interpolate`.
"""

from __future__ import annotations

from typing import Any

from tracejit.nn import functional as F
from tracejit.nn.module import Module


class Upsample(Module):
    """Resampling to another size: `nn.functional.interpolate` with these options.

    size              sizes of the output: an int, or one for each dimension
    scale_factor      factor of sizes instead; a number, or one for each dimension
    mode              "nearest" (default), "linear" (3 dimensions), "bilinear" or "bicubic" (4),
                      "trilinear" (5)
    align_corners     True: centres of the corner elements stay in place; None is False
    recompute_scale_factor  True: factors are those of the rounded sizes

    Input (N, C, L), (N, C, H, W) or (N, C, D, H, W); output (N, C, *size). The call raises
    ValueError for both or none of size and factor, or a wrong number of them. It raises
    NotImplementedError for a mode that does not go with the dimensions.

    >>> import tracejit
    >>> tracejit.nn.Upsample(scale_factor=2)(tracejit.ones(1, 3, 4, 5)).shape
    tracejit.Size([1, 3, 8, 10])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                 align_corners: bool | None = None,
                 recompute_scale_factor: bool | None = None) -> None:  # fmt: skip
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode, self.align_corners = mode, align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Any) -> Any:
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners,
                             recompute_scale_factor=self.recompute_scale_factor)  # fmt: skip

    def extra_repr(self) -> str:
        asked = "size" if self.scale_factor is None else "scale_factor"
        return f"{asked}={getattr(self, asked)!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Images in another size, where each element is that of the nearest place.

    size          (H, W) of the output, or one int for both
    scale_factor  factor of sizes instead; a number, or one for each dimension

    Input (N, C, H, W); output (N, C, *size) of the same dtype. The call raises ValueError for both
    or none of size and factor. `Upsample` does the same and has more modes.

    >>> import tracejit
    >>> tracejit.nn.UpsamplingNearest2d(scale_factor=2)(tracejit.tensor([[[[1.0, 2.0]]]])).flatten()
    tensor([1., 1., 2., 2., 1., 1., 2., 2.])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Images in another size, linear between neighbours; the corners stay the corners
    (`align_corners=True`).

    size          (H, W) of the output, or one int for both
    scale_factor  factor of sizes instead; a number, or one for each dimension

    Floating input (N, C, H, W); output (N, C, *size) of the same dtype. The call raises ValueError
    for both or none of size and factor. `Upsample` does the same and has more modes.

    >>> import tracejit
    >>> tracejit.nn.UpsamplingBilinear2d((1, 3))(tracejit.tensor([[[[1.0, 2.0]]]])).flatten()
    tensor([1.0000, 1.5000, 2.0000])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
