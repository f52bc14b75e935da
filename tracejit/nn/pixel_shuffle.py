"""Layers that move elements between channels and pixels, or among channels.

In: (..., C, H, W). Out: tensors of the same elements.
"""

from __future__ import annotations

from typing import Any

from tracejit.nn import functional as F
from tracejit.nn.module import Module


class PixelShuffle(Module):
    """Channels rearranged as pixels: an image that is `upscale_factor` times as high and as wide.

    upscale_factor  the factor r, a positive int

    Input (*, C * r * r, H, W); output (*, C, H * r, W * r) of the same dtype. Raises RuntimeError
    where the channels do not divide by r * r. The source is Shi et al., "Real-time single image and
    video super-resolution" (2016).

    >>> import tracejit
    >>> tracejit.nn.PixelShuffle(2)(tracejit.ones(1, 8, 2, 3)).shape
    tracejit.Size([1, 2, 4, 6])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Any) -> Any:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Pixels rearranged as channels: the inverse of `PixelShuffle`.

    downscale_factor  the factor r, a positive int

    Input (*, C, H * r, W * r); output (*, C * r * r, H, W) of the same dtype. Raises RuntimeError
    where height or width does not divide by r, and for inputs under 3 dimensions.

    >>> import tracejit
    >>> tracejit.nn.PixelUnshuffle(2)(tracejit.ones(1, 2, 4, 6)).shape
    tracejit.Size([1, 8, 2, 3])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Any) -> Any:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Channels in another order: written as `groups` rows, read column by column. It mixes the
    groups of grouped convolutions.

    groups  number of rows; divides the number of channels

    Input (N, C, *); the output has the same shape and dtype. Raises RuntimeError where the channels
    do not divide by the groups. The source is Zhang et al., "ShuffleNet" (2017).

    >>> import tracejit
    >>> tracejit.nn.ChannelShuffle(2)(tracejit.arange(4.0).reshape(1, 4, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Any) -> Any:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
