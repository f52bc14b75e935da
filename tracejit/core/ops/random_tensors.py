"""Tensors of random elements for tests: `testing.make_tensor`.

In: a shape, a dtype, limits. Out: a tensor whose elements are uniform between them, drawn from the
default generator.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from tracejit.core.ops.creation import empty
from tracejit.core.ops.pointwise_complex import view_as_complex
from tracejit.core.ops.random import randint
from tracejit.core.ops.type_limits import finfo, iinfo
from tracejit.core.ops.types import bool_, dtype, int64


def make_tensor(*shape: Any, dtype: dtype, device: Any, low: float | None = None,
                high: float | None = None, requires_grad: bool = False,
                noncontiguous: bool = False, exclude_zero: bool = False,
                memory_format: Any = None) -> Any:
    """Draw uniform elements in [low, high), of integers too; default: from -9 to 9.

    noncontiguous  every second element of memory, where there are two elements or more
    exclude_zero   1, or the smallest normal number, in the place of 0

    >>> import tracejit
    >>> x = make_tensor((2, 3), dtype=tracejit.int64, device="cpu", low=1, high=3)
    >>> bool(((x == 1) | (x == 2)).all())
    True

    ValueError for limits that are NaN, in the wrong order or beyond the dtype, for integers that
    are to have gradients, and for a memory format of what is not contiguous.
    """
    sizes = tuple(shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape)
    inexact = dtype.is_floating_point or dtype.is_complex
    if noncontiguous and memory_format is not None:
        raise ValueError("The parameters `noncontiguous` and `memory_format` are mutually "
                         f"exclusive, but got {noncontiguous=} and {memory_format=}")
    if requires_grad and not inexact:
        raise ValueError("`requires_grad=True` is not supported for boolean and integral dtypes, "
                         f"but got {dtype=}")
    apart = noncontiguous and math.prod(sizes) > 1
    made = _uniform((*sizes[:-1], 2 * sizes[-1]) if apart else sizes, dtype, device,
                    *_limits(low, high, dtype, inexact))
    if apart:
        made = made[..., 1::2]
    if exclude_zero:
        made[made == 0] = finfo(dtype).tiny if inexact else 1
    return made.requires_grad_(requires_grad)


def _limits(low: Any, high: Any, dtype: dtype, inexact: bool) -> tuple[Any, Any]:
    """Return the limits, as far as the dtype goes."""
    if dtype is bool_:
        least: Any = 0
        most: Any = 2
        usual = (0, 2)
    elif inexact:
        least, most, usual = finfo(dtype).min, finfo(dtype).max, (-9, 9)
    else:
        least, most, usual = iinfo(dtype).min, iinfo(dtype).max + (dtype is not int64), (-9, 10)
    low, high = usual[0] if low is None else low, usual[1] if high is None else high
    if low != low or high != high:
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and inexact:
        warnings.warn("Passing `low==high` to `torch.testing.make_tensor` for floating or complex "
                      "types is deprecated since 2.1 and will be removed in 2.3. Use "
                      "`torch.full(...)` instead.", FutureWarning, stacklevel=3)
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= most:
        raise ValueError(f"The value interval specified by `low` and `high` is [{low}, {high}), "
                         f"but {dtype} only supports [{least}, {most})")
    low, high = (min(max(x, least), most) for x in (low, high))
    return (low, high) if inexact else (math.ceil(low), math.ceil(high))


def _uniform(sizes: tuple[int, ...], dtype: dtype, device: Any, low: Any, high: Any) -> Any:
    if dtype.is_complex:
        parts = _uniform((*sizes, 2), dtype.to_real(), device, low, high)
        return view_as_complex(parts)
    if dtype.is_floating_point:
        # Where high - low overflows, draw between halves of the limits and double.
        scale = 1 if math.isfinite(float(high) - float(low)) else 2
        return empty(sizes, dtype=dtype, device=device).uniform_(low / scale, high / scale) * scale
    return randint(low, high, sizes, dtype=dtype, device=device)
