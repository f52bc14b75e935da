"""Pooling to a given size: as many windows as are asked for, which cover the input evenly.

In: (N, C, *spatial) or (C, *spatial), and the sizes of the result. Out: tensors of these sizes.
Called by users as `nn.functional.adaptive_*_pool*`, by `nn`.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops import shapes
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.max_pool_record import adaptive_max_pool_records
from tracejit.core.ops.pooling import batched, integers
from tracejit.core.ops.resampling_record import adaptive_avg_pool_records
from tracejit.core.ops.shapes import as_size
from tracejit.core.ops.types import FLOATING, SCALAR_NAMES


def _sizes(name: str, n: int, input: Any, output_size: Any) -> tuple:
    """Return an output size for each dimension; None keeps the input's."""
    if n == 1:
        given = integers(name, "output_size", 2, output_size)
        if len(given) != 1:
            raise RuntimeError(
                f"{name}() argument 'output_size' should contain one int (got {len(given)})"
            )
        return given
    if isinstance(output_size, int):
        return (as_size(output_size),) * n
    if len(output_size) != n:
        inner = f"{name}: " if "avg" in name else f"{name}(): internal error: "
        raise RuntimeError(f"{inner}output_size{'' if 'avg' in name else '.size()'} must be {n}")
    if len(input.shape) <= n:
        raise ValueError(f"Input dimension should be at least {n + 1}")
    return tuple(
        size if asked is None else as_size(asked)
        for asked, size in zip(output_size, input.shape[-n:])
    )


def _check(name: str, n: int, input: Any, out: tuple) -> None:
    ndim, mean = len(input.shape), "avg" in name
    if ndim not in (n + 1, n + 2):
        if n == 1:
            raise RuntimeError(f"Expected 2 to 3 dimensions, but got {ndim}-dimensional tensor for "
                               f"argument #1 'self' (while checking arguments for {name})")
        colon = "" if mean else ":"
        raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got{colon} "
                           f"{shapes.shape_text(input.shape)}")
    if mean and any(size < 0 for size in out):
        asked = [1, *out] if n == 1 else list(out)
        shown = ", ".join(map(str, asked[:2])) + "".join(f",{x}" for x in asked[2:])
        raise RuntimeError(
            f"adaptive_avg_pool{max(n, 2)}d: elements of output_size must be greater than or equal "
            f"to 0 but received {{{shown}}}"
        )
    # PyTorch's maxima, and means in 3d, refuse an image without channels; other means do not.
    first = ndim - n if mean and n < 3 else ndim - n - 1
    for k in range(first, ndim):
        if input.shape[k] == 0:
            lifted = mean and n == 1
            size = (*input.shape[:-1], 1, input.shape[-1]) if lifted else input.shape
            raise RuntimeError(
                f"{'adaptive_avg_pool2d' if lifted else name}(): Expected input to have non-zero "
                f"size for non-batch dimensions, but input has sizes {shapes.shape_text(size)} "
                f"with dimension {k + lifted} being empty"
            )
    if any(size < 0 for size in out):
        shape = (*input.shape[:ndim - n], *(1,) * (n == 1), *out)
        raise RuntimeError(f"Trying to create tensor with negative dimension "
                           f"{next(x for x in out if x < 0)}: {shapes.shape_text(shape)}")
    if input.dtype.category != FLOATING:
        kernel = {1: name[:-2] + "2d", 2: name, 3: name + "_cpu"}[n]
        raise NotImplementedError(
            f'"{kernel}" not implemented for \'{SCALAR_NAMES[input.dtype.name]}\''
        )


def _adaptive_avg_pool(n: int, input: Any, output_size: Any) -> Any:
    name = f"adaptive_avg_pool{n}d"
    out = _sizes(name, n, input, output_size)
    _check(name, n, input, out)
    asked = output_size if isinstance(output_size, (tuple, list)) else (output_size,)
    if n > 1 and all(size is not None and size == 1 for size in asked):
        return input.mean(tuple(range(-n, 0)), keepdim=True)
    how = (("adaptive",),) * n
    return batched(n, input, lambda x: adaptive_avg_pool_records[n](x, out=out, how=how))


def _adaptive_max_pool(n: int, input: Any, output_size: Any, return_indices: bool) -> Any:
    name = f"adaptive_max_pool{n}d"
    out = _sizes(name, n, input, output_size)
    _check(name, n, input, out)
    found = batched(n, input, lambda x: adaptive_max_pool_records[n](x, out=out))
    return found if return_indices else found[0]


def adaptive_avg_pool1d(input: Any, output_size: Any) -> Any:
    """Average over `output_size` windows that cover (N, C, L) or (C, L): (N, C, output_size).

    RuntimeError for inputs of other dimensions. See `adaptive_avg_pool2d`.

    >>> import tracejit
    >>> tracejit.adaptive_avg_pool1d(tracejit.tensor([[1., 3., 2., 0.]]), 2)
    tensor([[2., 1.]])
    """
    return _adaptive_avg_pool(1, input, output_size)


def adaptive_avg_pool2d(input: Any, output_size: Any) -> Any:
    """Average over windows that cover `input`, (N, C, H, W) or (C, H, W), floating.

    output_size  one integer, or (rows, columns); None keeps the input's size

    >>> import tracejit
    >>> x = tracejit.arange(16.0).reshape(1, 1, 4, 4)
    >>> tracejit.nn.functional.adaptive_avg_pool2d(x, (1, 2)).tolist()
    [[[[6.5, 8.5]]]]

    RuntimeError if sizes do not fit, NotImplementedError for other dtypes.
    """
    return _adaptive_avg_pool(2, input, output_size)


@autocasts(cpu="float32")
def adaptive_avg_pool3d(input: Any, output_size: Any) -> Any:
    """Average over windows that cover (N, C, D, H, W) or (C, D, H, W): (N, C, *output_size).

    output_size  (depth, height, width) or one int; None keeps a size

    See `adaptive_avg_pool2d`.

    >>> import tracejit
    >>> tracejit.nn.functional.adaptive_avg_pool3d(tracejit.ones(1, 2, 4, 4, 4), (2, 1, None)).shape
    tracejit.Size([1, 2, 2, 1, 4])
    """
    return _adaptive_avg_pool(3, input, output_size)


def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest element of each of `output_size` windows that cover (N, C, L) or (C, L).

    return_indices  True returns where in L they are too, as int64

    The result is (N, C, output_size). RuntimeError for inputs of other dimensions. See
    `adaptive_max_pool2d`.

    >>> import tracejit
    >>> tracejit.nn.functional.adaptive_max_pool1d(tracejit.tensor([[1., 3., 2., 0.]]), 2)
    tensor([[3., 2.]])
    """
    return _adaptive_max_pool(1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest elements of windows that cover `input`, (N, C, H, W) or (C, H, W),
    floating.

    output_size  one integer, or (rows, columns); None keeps the input's size
    return_indices  also return their positions in H * W, as int64

    >>> import tracejit
    >>> x = tracejit.arange(16.0).reshape(1, 1, 4, 4)
    >>> tracejit.nn.functional.adaptive_max_pool2d(x, (1, 2)).tolist()
    [[[[13.0, 15.0]]]]

    RuntimeError if sizes do not fit, NotImplementedError for other dtypes.
    """
    return _adaptive_max_pool(2, input, output_size, return_indices)


@autocasts(cpu="float32")
def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest elements of windows that cover (N, C, D, H, W) or (C, D, H, W).

    output_size     (depth, height, width) or one int; None keeps a size
    return_indices  True returns where in D * H * W they are too, as int64

    The result is (N, C, *output_size). See `adaptive_max_pool2d`.

    >>> import tracejit
    >>> tracejit.nn.functional.adaptive_max_pool3d(tracejit.ones(1, 2, 4, 4, 4), 2).shape
    tracejit.Size([1, 2, 2, 2, 2])
    """
    return _adaptive_max_pool(3, input, output_size, return_indices)
