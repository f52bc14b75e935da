"""Elements moved between channels and pixels, or among channels.

In: (..., C, H, W). Out: tensors of the same elements. Called by users as `nn.functional`'s, by
`nn`.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops.shapes import as_size, equal, hint, shape_text


def _checked(name: str, factor: Any, what: str, input: Any) -> Any:
    ndim, by = len(input.shape), as_size(factor)
    if ndim < 3:
        raise RuntimeError(f"{name} expects input to have at least 3 dimensions, but got input "
                           f"with {ndim} dimension(s)")
    if by <= 0:
        raise RuntimeError(f"{name} expects a positive {what}, but got {hint(by)}")
    return by


def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    """Move (..., C * r * r, H, W) to (..., C, H * r, W * r), r being `upscale_factor`.

    >>> import tracejit
    >>> tracejit.nn.functional.pixel_shuffle(tracejit.ones(1, 8, 2, 3), 2).shape
    tracejit.Size([1, 2, 4, 6])

    RuntimeError if the channels cannot be divided.
    """
    r = _checked("pixel_shuffle", upscale_factor, "upscale_factor", input)
    *lead, channels, rows, columns = input.shape
    if not equal(channels % (r * r), 0):
        raise RuntimeError("pixel_shuffle expects its input's 'channel' dimension to be divisible "
                           f"by the square of upscale_factor, but input.size(-3)={hint(channels)} "
                           f"is not divisible by {hint(r * r)}")
    fewer = channels // (r * r)
    apart = input.reshape((*lead, fewer, r, r, rows, columns))
    moved = apart.movedim((-4, -3), (-3, -1))  # (..., fewer, rows, r, columns, r)
    return moved.clone().reshape((*lead, fewer, rows * r, columns * r))


def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """Move (..., C, H * r, W * r) to (..., C * r * r, H, W): the inverse of `pixel_shuffle`.

    >>> import tracejit
    >>> tracejit.nn.functional.pixel_unshuffle(tracejit.ones(1, 2, 4, 6), 2).shape
    tracejit.Size([1, 8, 2, 3])

    RuntimeError if rows or columns cannot be divided.
    """
    r = _checked("pixel_unshuffle", downscale_factor, "downscale_factor", input)
    *lead, channels, rows, columns = input.shape
    for what, place, size in (("height", -2, rows), ("width", -1, columns)):
        if not equal(size % r, 0):
            raise RuntimeError(f"pixel_unshuffle expects {what} to be divisible by "
                               f"downscale_factor, but input.size({place})={hint(size)} is not "
                               f"divisible by {hint(r)}")
    apart = input.reshape((*lead, channels, rows // r, r, columns // r, r))
    moved = apart.movedim((-3, -1), (-4, -3))  # (..., channels, r, r, rows, columns)
    return moved.clone().reshape((*lead, channels * r * r, rows // r, columns // r))


def channel_shuffle(input: Any, groups: int) -> Any:
    """Read the channels of (N, C, ...), `groups` rows of them, column by column.

    >>> import tracejit
    >>> tracejit.nn.functional.channel_shuffle(tracejit.arange(4).reshape(1, 4, 1), 2).tolist()
    [[[0], [2], [1], [3]]]

    RuntimeError if the channels cannot be divided.
    """
    if len(input.shape) < 3:
        raise RuntimeError("channel_shuffle expects input with > 2 dims, but got input with sizes "
                           f"{shape_text(input.shape)}")
    count = as_size(groups)
    if count <= 0:
        raise RuntimeError("Number of groups to divide channels in must be positive. Value of "
                           f"groups:{hint(count)}")
    batch, channels, *rest = input.shape
    if not equal(channels % count, 0):
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {hint(channels)} "
                           f"channels and {hint(count)} groups.")
    rows = input.reshape((batch, count, channels // count, *rest))
    return rows.transpose(1, 2).clone().reshape((batch, channels, *rest))
