"""Fractional max pooling: the largest elements of windows whose steps are drawn at random.

In: images (C, *spatial) or (N, C, *spatial), the size of windows and of the result. Out: the
largest elements and where they are. Called by `nn.functional`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tracejit.core.ops.creation import arange
from tracejit.core.ops.joining import cat
from tracejit.core.ops.pointwise import convert
from tracejit.core.ops.random import rand
from tracejit.core.ops.shapes import hint, normalize_dim, shape_text
from tracejit.core.ops.types import int64


def fractional_max_pool2d(input: Any, kernel_size: Any, output_size: Any = None,
                          output_ratio: Any = None, return_indices: bool = False,
                          _random_samples: Any = None) -> Any:
    """Return the largest element of each of `output_size` windows, evenly spaced but for chance.

    return_indices   also return its place in the flattened image
    output_ratio     the result's size as a fraction of the input's
    _random_samples  (N, C, 2) numbers in [0, 1) that say where windows begin

    ValueError unless exactly one of size and ratio is given, RuntimeError for windows too large.

    >>> import tracejit
    >>> fractional_max_pool2d(tracejit.ones(1, 1, 5, 5), 2, output_size=3).shape
    tracejit.Size([1, 1, 3, 3])
    """
    return _pooled("fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio,
                   return_indices, _random_samples)


def fractional_max_pool3d(input: Any, kernel_size: Any, output_size: Any = None,
                          output_ratio: Any = None, return_indices: bool = False,
                          _random_samples: Any = None) -> Any:
    """Do `fractional_max_pool2d` for volumes (N, C, D, H, W) or (C, D, H, W): (N, C, *output_size).

    `_random_samples` (N, C, 3) are in [0, 1) and place the windows. ValueError without size and
    ratio.

    >>> import tracejit
    >>> tracejit.nn.functional.fractional_max_pool3d(tracejit.ones(1, 2, 4, 4, 4), 2, 3).shape
    tracejit.Size([1, 2, 3, 3, 3])
    """
    return _pooled("fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio,
                   return_indices, _random_samples)


def _pooled(name: str, n: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any,
            return_indices: bool, samples: Any) -> Any:
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    normalize_dim(-n - 1, len(input.shape))
    if len(input.shape) not in (n + 1, n + 2):
        raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got: "
                           f"{len(input.shape)}D")
    kernel, spatial = _each(kernel_size, n), input.shape[-n:]
    if output_size is None:
        if n == 2 and isinstance(output_ratio, Sequence) and len(output_ratio) > n:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of "
                             "Ints.")
        ratios = _each(output_ratio, n)
        output_size = [int(size * ratio) for size, ratio in zip(spatial, ratios)]
    sizes = _each(output_size, n)
    letters = ("height", "width") if n == 2 else ("time", "height", "width")
    for letter, out, k, size in zip(letters, sizes, kernel, spatial):
        if out + k - 1 > size:
            raise RuntimeError(f"{name}(): pool {letter} {k} too large relative to input {letter} "
                               f"{hint(size)}")
    for k in range(1, len(input.shape)):
        if input.shape[k] == 0:
            raise RuntimeError(f"{name}{'_out' * (n == 3)}(): Expected input to have non-zero size "
                               f"for non-batch dimensions, but got{shape_text(input.shape)} with "
                               f"dimension {k} being empty.")
    images = input if len(input.shape) == n + 2 else input.unsqueeze(0)
    if samples is None:
        samples = rand(*images.shape[:2], n, dtype=input.dtype, device=input.device)
    else:
        _check_samples(samples, n, images.shape)
        samples = samples[:images.shape[0]]  # an image without a batch has the first of them
    order = (1, 0) if n == 2 else (0, 1, 2)  # the samples of images begin with their widths
    places: Any = 0
    for d in range(n):
        here = _starts(samples.select(-1, order[d]), spatial[d], sizes[d], kernel[d])
        inside = arange(kernel[d], device=input.device)
        shape = (*here.shape[:2], *(1,) * d, sizes[d], *(1,) * (n - 1), kernel[d],
                 *(1,) * (n - 1 - d))
        each = (here.unsqueeze(-1) + inside).reshape(shape)
        places = places * spatial[d] + each
    whole = (*images.shape[:2], *sizes, *kernel)
    flat = places.expand(whole).flatten(2)
    found = images.flatten(2).gather(2, flat).reshape(*whole[:n + 2], math.prod(kernel))
    where = found.argmax(-1, keepdim=True)
    at = flat.reshape(*whole[:n + 2], math.prod(kernel)).gather(-1, where).squeeze(-1)
    largest = images.flatten(2).gather(2, at.flatten(2)).reshape(at.shape)
    if len(input.shape) == n + 1:
        largest, at = largest.squeeze(0), at.squeeze(0)
    return (largest, at) if return_indices else largest


def _check_samples(samples: Any, n: int, shape: Any) -> None:
    said, given = "Expect _random_samples", samples.shape
    if len(given) != 3:
        raise RuntimeError(f"{said} to have 3 dimensions, got {len(given)}")
    if given[0] < shape[0]:
        raise RuntimeError(f"{said}.size(0) no less then input batch size.")
    if given[1] != shape[1]:
        raise RuntimeError(f"{said}.size(1) equals to input channel size.")
    if given[2] != n:
        raise RuntimeError(f"{said}.size(2) equals to {n}; got {hint(given[2])}.")


def _each(given: Any, n: int) -> list[Any]:
    return [*given] if isinstance(given, Sequence) else [given] * n


def _starts(samples: Any, size: Any, out: int, kernel: int) -> Any:
    """Return (N, C, out): where windows begin; the last one ends with the image."""
    last = (samples.unsqueeze(-1) * 0).to(int64) + (size - kernel)
    if out < 2:
        return last[..., :out]
    step = convert(last, samples.dtype)[..., :1] / (out - 1)
    numbers = arange(out - 1, dtype=samples.dtype, device=samples.device)
    first = (samples.unsqueeze(-1) * step).to(int64)
    return cat([((numbers + samples.unsqueeze(-1)) * step).to(int64) - first, last], -1)
