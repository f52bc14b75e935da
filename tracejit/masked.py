"""Reductions and normalisations of the elements that a mask keeps; PyTorch's `torch.masked`.

In: tensors, and bool tensors that broadcast to them; where a mask is False an element does not
count. Out: tensors. Where no element is left, the result is the operation's identity: 0 for sums, 1
for products, -inf for maxima. A mean or a median of nothing is NaN. Masked tensors are not there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.core.ops import logarithms, order_statistics, pointwise, reduction, scan
from tracejit.core.ops import sealing as _sealing
from tracejit.core.ops import softmax as _softmax
from tracejit.core.ops.linalg_norms import vector_norm
from tracejit.core.ops.movement import broadcast_to
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.types import BOOL, FLOATING, INTEGER, bool_, dtype, float32, int64
from tracejit.nn import functional

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp",
    "logsumexp", "mean", "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum",
    "var",
]  # fmt: skip

_Dims = int | Sequence[int] | None


def _mask_of(input: Any, mask: Any) -> Any:
    """Return the mask as bool, in the input's shape; IndexError where it has more dimensions."""
    if mask.dim() > input.dim():
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher "
                         "than of the input)")
    return convert(broadcast_to(mask, tuple(input.shape)), bool_)


def _filled(input: Any, mask: Any, value: float | None) -> Any:
    """Return the input with `value` where the mask is False."""
    if mask is None:
        return input
    return pointwise.where(_mask_of(input, mask), input, value)


def _bounded(input: Any, mask: Any, name: str) -> Any:
    """Return the input with the identity of the reduction `name` where the mask is False: the least
    number of the dtype, or the greatest. NotImplementedError for bools, as in PyTorch."""
    if mask is None:
        return input
    kind, low = input.dtype, name in ("amax", "argmax", "logsumexp", "logaddexp")
    if kind.category == BOOL:
        raise NotImplementedError(f"identity of {name} on {kind} input")
    if kind.category == INTEGER:
        limits = np.iinfo(kind.numpy)
        return _filled(input, mask, int(limits.min if low else limits.max))
    return _filled(input, mask, -math.inf if low else math.inf)


def _dims(dim: _Dims, count: int) -> tuple[int, ...]:
    """Return dimensions in order. RuntimeError for one twice, IndexError for one that is not
    there."""
    if dim is None or dim == ():
        return tuple(range(count))
    found: list[int] = []
    count = max(count, 1)
    for d in (dim,) if isinstance(dim, int) else dim:
        if d in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if not -count <= d < count:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, "
                             f"{count - 1}], but got {d})")
        found.append(d % count)
    return tuple(sorted(found))


def _whole(input: Any, given: dtype | None) -> dtype:
    """Return the dtype of sums and products: int64 for integers and bools."""
    if given is not None:
        return given
    found: dtype = input.dtype
    return int64 if found.category in (BOOL, INTEGER) else found


def sum(input: Any, dim: _Dims = None, *, keepdim: bool | None = False,
        dtype: dtype | None = None, mask: Any = None) -> Any:
    """Sum the elements that the mask keeps.

    >>> import tracejit
    >>> x = tracejit.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> tracejit.masked.sum(x, 1, mask=tracejit.tensor([True, False])).tolist()
    [1.0, 3.0]
    """
    return reduction.sum(_filled(input, mask, 0), _dims(dim, input.dim()), bool(keepdim),
                         dtype=_whole(input, dtype))


def prod(input: Any, dim: _Dims = None, *, keepdim: bool | None = False,
         dtype: dtype | None = None, mask: Any = None) -> Any:
    """Multiply the elements that the mask keeps."""
    found = convert(_filled(input, mask, 1), _whole(input, dtype))
    for d in reversed(_dims(dim, input.dim())):
        found = reduction.prod(found, d, bool(keepdim))
    return found


def cumsum(input: Any, dim: int, *, dtype: dtype | None = None, mask: Any = None) -> Any:
    """Compute running sums; masked elements count as 0."""
    (d,) = _dims(dim, input.dim())
    return scan.cumsum(_filled(input, mask, 0), d, dtype=dtype or input.dtype)


def cumprod(input: Any, dim: int, *, dtype: dtype | None = None, mask: Any = None) -> Any:
    """Compute running products; masked elements count as 1."""
    (d,) = _dims(dim, input.dim())
    return scan.cumprod(_filled(input, mask, 1), d, dtype=dtype or input.dtype)


def amax(input: Any, dim: _Dims = None, *, keepdim: bool | None = False,
         dtype: dtype | None = None, mask: Any = None) -> Any:
    """Return the largest element that the mask keeps."""
    found = reduction.amax(_bounded(input, mask, "amax"), _dims(dim, input.dim()),
                           bool(keepdim))
    return convert(found, dtype or input.dtype)


def amin(input: Any, dim: _Dims = None, *, keepdim: bool | None = False,
         dtype: dtype | None = None, mask: Any = None) -> Any:
    """Return the smallest element that the mask keeps."""
    found = reduction.amin(_bounded(input, mask, "amin"), _dims(dim, input.dim()),
                           bool(keepdim))
    return convert(found, dtype or input.dtype)


def argmax(input: Any, dim: int | None = None, *, keepdim: bool | None = False,
           dtype: dtype | None = None, mask: Any = None) -> Any:
    """Return the index of the largest element that the mask keeps; in the input's dtype, unless
    given."""
    found = reduction.argmax(_bounded(input, mask, "argmax"), dim, bool(keepdim))
    return convert(found, dtype or input.dtype)


def argmin(input: Any, dim: int | None = None, *, keepdim: bool | None = False,
           dtype: dtype | None = None, mask: Any = None) -> Any:
    """Return the index of the smallest element that the mask keeps; in the input's dtype, unless
    given."""
    found = reduction.argmin(_bounded(input, mask, "argmin"), dim, bool(keepdim))
    return convert(found, dtype or input.dtype)


def _count(input: Any, mask: Any, dim: _Dims, keepdim: bool) -> Any:
    kept = input.new_ones(tuple(input.shape), dtype=int64) if mask is None else convert(
        _mask_of(input, mask), int64)
    return reduction.sum(kept, _dims(dim, input.dim()), keepdim)


def mean(input: Any, dim: _Dims = None, *, keepdim: bool | None = False,
         dtype: dtype | None = None, mask: Any = None) -> Any:
    """Compute means of the elements that the mask keeps. ValueError for dtypes that are neither
    floating nor complex."""
    wanted = dtype or input.dtype
    if wanted.category < FLOATING:
        source = "Input" if dtype is None else "Optional"
        raise ValueError(f"mean(): Could not infer output dtype. {source} dtype must be either a "
                         f"floating point or complex dtype. Got: {wanted}")
    total = sum(input, dim, keepdim=keepdim, dtype=wanted, mask=mask)
    return total / _count(input, mask, dim, bool(keepdim))


def median(input: Any, dim: int = -1, *, keepdim: bool = False, dtype: dtype | None = None,
           mask: Any = None) -> Any:
    """Compute medians of the elements that the mask keeps. ValueError where integers have none."""
    wanted, floating = dtype or input.dtype, input.is_floating_point()
    (d,) = _dims(dim, input.dim())
    filled = _filled(input if floating else convert(input, float32), mask, math.nan)
    found = order_statistics.nanmedian(filled, d, keepdim)[0]
    if floating:
        return found
    if pointwise.isnan(found).any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating "
                         "point")
    return convert(found, wanted)


def norm(input: Any, ord: float | None = 2.0, dim: _Dims = None, *, keepdim: bool | None = False,
         dtype: dtype | None = None, mask: Any = None) -> Any:
    """Compute vector norms of the elements that the mask keeps."""
    ord = 2.0 if ord is None else ord
    filled = _filled(input, mask, math.inf if ord == -math.inf else 0)
    return vector_norm(filled, ord, _dims(dim, input.dim()), bool(keepdim),
                       dtype=dtype or input.dtype)


def normalize(input: Any, ord: float, dim: int, *, eps: float = 1e-12,
              dtype: dtype | None = None, mask: Any = None) -> Any:
    """Divide the elements that the mask keeps by their norm, which is at least `eps`; the rest is
    0."""
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(input, mask, 0) / pointwise.maximum(size, size.new_full((), eps))


def var(input: Any, dim: _Dims = None, unbiased: bool | None = None, *,
        correction: float | None = None, keepdim: bool | None = False,
        dtype: dtype | None = None, mask: Any = None) -> Any:
    """Compute variances of the elements that the mask keeps, divided by their count less
    `correction` (1)."""
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    less = 1.0 if unbiased is None else float(unbiased)
    less = less if correction is None else float(correction)
    wanted = dtype or input.dtype
    if dtype is None and wanted.category < FLOATING:
        wanted = float32
    computed = wanted if wanted.category >= FLOATING else float32
    count = _count(input, mask, dim, True)
    center = sum(input, dim, keepdim=True, dtype=wanted, mask=mask) / count
    away = input - center
    total = sum(away * away.conj(), dim, keepdim=keepdim, dtype=computed, mask=mask)
    count = count.reshape(tuple(total.shape))
    if less:
        count = pointwise.clamp(convert(count, computed.to_real()) - less, min=0)
    return convert(total / count, wanted)


def std(input: Any, dim: _Dims = None, unbiased: bool | None = None, *,
        correction: int | None = None, keepdim: bool | None = False,
        dtype: dtype | None = None, mask: Any = None) -> Any:
    """Compute standard deviations of the elements that the mask keeps."""
    wanted = dtype or (input.dtype if input.dtype.category >= FLOATING else float32)
    computed = wanted if wanted.category >= FLOATING else float32
    found = var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=computed,
                mask=mask)
    return convert(pointwise.sqrt(found), wanted)


def softmax(input: Any, dim: int, *, dtype: dtype | None = None, mask: Any = None) -> Any:
    """Compute `softmax` over the elements that the mask keeps; the rest is 0.

    >>> import tracejit
    >>> x, mask = tracejit.zeros(3), tracejit.tensor([True, True, False])
    >>> tracejit.masked.softmax(x, 0, mask=mask).tolist()
    [0.5, 0.5, 0.0]
    """
    (d,) = _dims(dim, input.dim())
    return _softmax.softmax(_bounded(input, mask, "amax"), d, dtype=dtype or input.dtype)


def log_softmax(input: Any, dim: int, *, dtype: dtype | None = None, mask: Any = None) -> Any:
    """Compute `log_softmax` over the elements that the mask keeps; the rest is -inf."""
    (d,) = _dims(dim, input.dim())
    return _softmax.log_softmax(_bounded(input, mask, "amax"), d, dtype=dtype or input.dtype)


def softmin(input: Any, dim: int, *, dtype: dtype | None = None, mask: Any = None) -> Any:
    """Compute `softmin` over the elements that the mask keeps; the rest is 0."""
    (d,) = _dims(dim, input.dim())
    return functional.softmin(_bounded(input, mask, "amin"), d,
                              dtype=dtype or input.dtype)


def logsumexp(input: Any, dim: _Dims = None, *, keepdim: bool = False,
              dtype: dtype | None = None, mask: Any = None) -> Any:
    """Compute logarithms of sums of exponentials of the elements that the mask keeps."""
    found = _softmax.logsumexp(_bounded(input, mask, "logsumexp"), _dims(dim, input.dim()),
                               keepdim)
    return convert(found, dtype or input.dtype)


def logaddexp(input: Any, other: Any, *, dtype: dtype | None = None, input_mask: Any = None,
              other_mask: Any = None) -> Any:
    """Compute `logaddexp` of the elements that the masks keep."""
    found = logarithms.logaddexp(_bounded(input, input_mask, "logaddexp"),
                                 _bounded(other, other_mask, "logaddexp"))
    return convert(found, dtype or input.dtype)

_sealing.seal_all(globals())
