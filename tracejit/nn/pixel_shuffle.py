"""Layers that move elements between channels and pixels, or among channels.

In: (..., C, H, W). Out: tensors of the same elements.
"""

from __future__ import annotations

from typing import Any

from tracejit.nn import functional as F
from tracejit.nn.module import Module


class PixelShuffle(Module):
    """(..., C * r * r, H, W) to (..., C, H * r, W * r).

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
    """(..., C, H * r, W * r) to (..., C * r * r, H, W)."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Any) -> Any:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Channels of (N, C, ...) as `groups` rows, read column by column."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Any) -> Any:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
