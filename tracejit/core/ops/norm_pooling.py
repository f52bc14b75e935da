"""Pooling by norms, and the reverse of pooling by maxima.

In: (N, C, *spatial) or (C, *spatial). Out: tensors of as many dimensions. Called by users as
`nn.functional.lp_pool*` and `max_unpool*`, by `nn`.
"""

from __future__ import annotations

import math
from typing import Any

from tracejit.core.ops import creation, shapes
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.gather_scatter import scatter_record
from tracejit.core.ops.pooling import avg_pool1d, avg_pool2d, avg_pool3d
from tracejit.core.ops.shapes import as_size
from tracejit.core.ops.types import int64

_MEANS = {1: avg_pool1d, 2: avg_pool2d, 3: avg_pool3d}


def _tuple(n: int, value: Any) -> tuple:
    return tuple(map(as_size, value)) if isinstance(value, (tuple, list)) else (as_size(value),) * n


def _lp_pool(n: int, input: Any, norm_type: float, kernel_size: Any, stride: Any,
             ceil_mode: bool) -> Any:  # fmt: skip
    mean = _MEANS[n](input**norm_type, kernel_size, stride, 0, ceil_mode)
    total = mean.sign() * mean.abs().relu() * math.prod(_tuple(n, kernel_size))
    return total ** (1.0 / norm_type)


def lp_pool1d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None,
              ceil_mode: bool = False) -> Any:  # fmt: skip
    """Return the norm of each window of (N, C, L) or (C, L): see `lp_pool2d`.

    The result is (N, C, L') with L' = floor((L - kernel_size) / stride) + 1.

    >>> import tracejit
    >>> tracejit.nn.functional.lp_pool1d(tracejit.tensor([[3., 4., 0., 1.]]), 2, 2)
    tensor([[5., 1.]])
    """
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None,
              ceil_mode: bool = False) -> Any:  # fmt: skip
    """Return the root of the sum of powers `norm_type` of each window of (N, C, H, W) or (C, H, W).

    >>> import tracejit
    >>> x = tracejit.tensor([[[3.0, 4.0]]])
    >>> tracejit.nn.functional.lp_pool2d(x, 2, (1, 2)).tolist()
    [[[5.0]]]

    Windows, and errors, are those of `avg_pool2d`.
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None,
              ceil_mode: bool = False) -> Any:  # fmt: skip
    """Return the norm of each window of (N, C, D, H, W) or (C, D, H, W): see `lp_pool2d`.

    >>> import tracejit
    >>> tracejit.nn.functional.lp_pool3d(tracejit.ones(1, 1, 2, 2, 4), 1, 2).flatten()
    tensor([8., 8.])
    """
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


# -- from maxima back ------------------------------------------------------------------------------
def _unpooled(
    n: int, input: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> tuple:
    """Return the sizes that the input had before pooling."""
    kernel = _tuple(n, kernel_size)
    steps = kernel if stride is None else _tuple(n, stride)
    usual = [
        (size - 1) * s + k - 2 * p
        for size, k, s, p in zip(input.shape[-n:], kernel, steps, _tuple(n, padding))
    ]
    if output_size is None:
        for d, size in enumerate(usual):
            if size < 0:
                raise ValueError(
                    "max_unpooling: output_size must contain non-negative spatial dimensions, but "
                    f"got output_size[{d}]={shapes.hint(size)}"
                )
        return tuple(usual)
    asked = tuple(map(as_size, output_size))
    if len(asked) == n + 2:
        asked = asked[2:]
    if len(asked) != n:
        raise ValueError(f"output_size should be a sequence containing {n} or {n + 2} elements, "
                         f"but it has a length of '{len(asked)}'")
    for d, (size, least) in enumerate(zip(asked, usual)):
        low, high = least - steps[d], least + steps[d]
        if not low < size < high:
            raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between {low} '
                             f"and {high})")
    return asked


def _max_unpool(n: int, input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any,
                output_size: Any) -> Any:  # fmt: skip
    sizes = _unpooled(n, input, kernel_size, stride, padding, output_size)
    if indices.dtype is not int64:
        raise RuntimeError("elements in indices should be type int64 but got: "
                           f"{str(indices.dtype).rpartition('.')[2]}")
    if not shapes.same_shape(input.shape, indices.shape):
        raise RuntimeError("Expected shape of indices to be same as that of the input tensor "
                           f"({shapes.shape_text(input.shape)}) but got indices tensor with "
                           f"shape: {shapes.shape_text(indices.shape)}")
    ndim = len(input.shape)
    if ndim not in (n + 1, n + 2):
        raise RuntimeError(f"Input to max_unpooling{max(n, 2)}d should be a {n + 1}d or {n + 2}d "
                           f"Tensor, but got a tensor with {ndim} dimensions.")
    for d, size in enumerate(input.shape[ndim - n:], ndim - n):
        if shapes.equal(size, 0):
            raise RuntimeError(
                f"max_unpooling{max(n, 2)}d_forward_out_cpu(): Expected input to have non-zero "
                f"size for non-batch dimensions, but got {shapes.shape_text(input.shape)} with "
                f"dimension {d} being empty."
            )
    steps = () if n != 3 or stride is None else _tuple(n, stride)
    if any(step <= 0 for step in steps):
        raise RuntimeError(f"strides should be greater than zero, but got stride: {list(steps)}")
    lead = tuple(input.shape[:ndim - n])
    whole = creation.full_of(input, (*lead, shapes.numel(sizes)), 0, input.dtype)
    rows = (*lead, shapes.numel(input.shape[ndim - n:]))
    volume = (*sizes, 1) if n == 1 else tuple(sizes)  # rows are images of one column
    filled = scatter_record(whole, indices.reshape(rows), input.reshape(rows), dim=ndim - n,
                            volume=volume)
    return filled.reshape((*lead, *sizes))


def max_unpool1d(input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 output_size: Any = None) -> Any:  # fmt: skip
    """Put the maxima of (N, C, L) or (C, L) back where they were: see `max_unpool2d`.

    The result is (N, C, L'), with zeros elsewhere. ValueError for an `output_size` that the pooling
    cannot have had.

    >>> import tracejit
    >>> F = tracejit.nn.functional
    >>> F.max_unpool1d(tracejit.tensor([[3., 2.]]), tracejit.tensor([[1, 2]]), 2)
    tensor([[0., 3., 2., 0.]])
    """
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


@autocasts(cpu="float32")
def max_unpool2d(input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 output_size: Any = None) -> Any:  # fmt: skip
    """Put the maxima that `max_pool2d` of the same windows gave back at `indices`, among zeros.

    output_size  sizes before pooling, where the windows do not say them

    >>> import tracejit
    >>> F = tracejit.nn.functional
    >>> maxima, indices = F.max_pool2d(tracejit.arange(4.0).reshape(1, 2, 2), 2,
    ...                                return_indices=True)
    >>> F.max_unpool2d(maxima, indices, 2).tolist()
    [[[0.0, 0.0], [0.0, 3.0]]]

    ValueError for impossible sizes, RuntimeError for indices that do not fit.
    """
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


@autocasts(cpu="float32")
def max_unpool3d(input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 output_size: Any = None) -> Any:  # fmt: skip
    """Put the maxima of (N, C, D, H, W) or (C, D, H, W) back: see `max_unpool2d`.

    >>> import tracejit
    >>> places = tracejit.zeros(1, 1, 1, 1, dtype=tracejit.int64)
    >>> tracejit.nn.functional.max_unpool3d(tracejit.ones(1, 1, 1, 1), places, 2).shape
    tracejit.Size([1, 2, 2, 2])
    """
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)
