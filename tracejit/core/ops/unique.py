"""Distinct elements and their counts: unique, unique_consecutive, bincount, histc.

In: a tensor. Out: elements without repetition, where each went, counts. Called by users. The array
library computes them; the sizes of all results but histc's depend on values (`dynamic`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise import convert
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import as_size, equal, normalize_dim
from tracejit.core.ops.types import (
    BOOL,
    COMPLEX,
    FLOATING,
    SCALAR_NAMES,
    TensorType,
    float32,
    float64,
    int64,
)


def _comparable(rows: Any) -> Any:
    """Return rows whose columns NumPy can order."""
    if rows.dtype.kind == "V":  # bfloat16
        return rows.astype(np.float32)
    return rows


def _rows_array(xp: Any, input: Any, consecutive: bool) -> tuple[Any, Any, Any]:
    """Return the rows that differ from the one before, in order; where each row went; counts.

    NaN differs from NaN.
    """
    count, width = input.shape
    order = xp.arange(count)
    if not consecutive and width:
        order = xp.lexsort(_comparable(input).T[::-1])
    ordered = input[order]
    starts = xp.ones(count, bool)
    starts[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    inverse = xp.empty(count, xp.int64)
    inverse[order] = xp.cumsum(starts) - 1
    first = xp.flatnonzero(starts)
    counts = xp.diff(xp.append(first, count)).astype(xp.int64)
    return ordered[first], inverse, counts


def _rows_types(input: Any, consecutive: bool) -> tuple[TensorType, ...]:
    count, width = input.shape
    return (TensorType(input.dtype, (None, width), input.device),
            TensorType(int64, (count,), input.device), TensorType(int64, (None,), input.device))


def _no_rule(grad: Any, consecutive: bool) -> Any:
    name = "unique_consecutive" if consecutive else "_unique2"
    raise NotImplementedError(f"the derivative for '{name}' is not implemented.")


unique_record = Op("unique", "extern", ("input",), outputs=("out", "inverse", "counts"),
                   dynamic="compute it outside of the captured function",
                   infer=_rows_types, eager=_rows_array, rules={"input": _no_rule})


def _distinct(input: Any, dim: int | None, consecutive: bool) -> tuple[Any, Any, Any]:
    """Return (values, inverse, counts) of elements, or of slices along `dim`."""
    if input.dtype.category == COMPLEX:
        kind = SCALAR_NAMES[input.dtype.name]
        raise NotImplementedError(f"\"unique\" not implemented for '{kind}'")
    if dim is None:
        values, inverse, counts = unique_record(input.reshape(-1, 1), consecutive=consecutive)
        return values.reshape(-1), inverse.reshape(tuple(input.shape)), counts
    if not input.shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = normalize_dim(dim, len(input.shape))
    rest = (*tuple(input.shape)[:axis], *tuple(input.shape)[axis + 1:])
    if any(equal(size, 0) for size in rest):
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique "
                           "cannot be applied")
    rows = input.movedim(axis, 0).reshape(input.shape[axis], math.prod(rest))
    values, inverse, counts = unique_record(rows, consecutive=consecutive)
    return values.reshape(values.shape[0], *rest).movedim(0, axis), inverse, counts


def _asked(found: tuple[Any, Any, Any], return_inverse: bool, return_counts: bool) -> Any:
    values, inverse, counts = found
    if not return_inverse and not return_counts:
        return values
    return (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))


@method()
def unique(input: Any, sorted: bool = True, return_inverse: bool = False,
           return_counts: bool = False, dim: int | None = None) -> Any:
    """Return the elements (slices along `dim`) without repetition, in order.

    `return_inverse`: also where each element is in the result; `return_counts`: also how often each
    occurs. NaN differs from NaN.

    >>> import tracejit
    >>> tracejit.tensor([3, 1, 3]).unique().tolist()
    [1, 3]
    """
    return _asked(_distinct(input, dim, False), return_inverse, return_counts)


@method()
def unique_consecutive(input: Any, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:
    """Return the elements (slices along `dim`) that differ from the one before, as `unique` does.

    >>> import tracejit
    >>> tracejit.tensor([3, 3, 1, 3]).unique_consecutive().tolist()
    [3, 1, 3]
    """
    return _asked(_distinct(input, dim, True), return_inverse, return_counts)


# -- counts ----------------------------------------------------------------------------------------
def _bincount_array(xp: Any, input: Any, *weights: Any, minlength: int) -> Any:
    if input.size and input.min() < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    counts = xp.bincount(input, *weights, minlength=minlength)
    return counts.astype(weights[0].dtype) if weights and input.size else counts


bincount_record = Op(
    "bincount", "extern", ("input", "*weights"), eager=_bincount_array,
    dynamic="tracejit.zeros(n).index_add(0, input, ones) has a fixed number of bins",
    infer=lambda input, *weights, minlength: TensorType(
        weights[0].dtype if weights else int64, (None,), input.device))


@method()
def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Count how often each integer 0, 1 ... occurs, or sum the weights where it does.

    >>> import tracejit
    >>> tracejit.tensor([1, 3, 1]).bincount().tolist()
    [0, 2, 0, 1]

    RuntimeError unless `input` is a vector of integers that are not negative.
    """
    if input.dtype.category in (BOOL, FLOATING, COMPLEX):
        raise NotImplementedError(
            f"\"bincount_cpu\" not implemented for '{SCALAR_NAMES[input.dtype.name]}'")
    length = as_size(minlength)
    if length < 0:
        raise RuntimeError("minlength should be >= 0")
    if len(input.shape) != 1:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return bincount_record(input, minlength=length)
    if len(weights.shape) != 1 or not equal(weights.shape[0], input.shape[0]):
        raise RuntimeError("weights should be 1-d and have the same length as input")
    kind = float32 if weights.dtype is float32 else float64
    return bincount_record(input, convert(weights, kind), minlength=length)


def _histogram_array(xp: Any, input: Any, bins: int, low: float, high: float) -> Any:
    number = np.float64 if input.dtype == np.float64 else np.float32
    start, end, values = number(low), number(high), input.reshape(-1).astype(number)
    if start == end and values.size:
        start, end = number(values.min().item()), number(values.max().item())
    if not (np.isfinite(start) and np.isfinite(end)):
        raise RuntimeError(f"torch.histc: range of [{float(start):g}, {float(end):g}] is not "
                           "finite")
    if start == end:
        start, end = start - number(1), end + number(1)
    inside = values[(values >= start) & (values <= end)]
    places = ((inside - start) / (end - start) * number(bins)).astype(np.int64)
    # The upper end belongs to the last bin.
    return xp.bincount(xp.minimum(places, bins - 1), minlength=bins).astype(input.dtype)


histogram_record = Op(
    "histc", "extern", ("input",), eager=_histogram_array, may_fail=True,
    infer=lambda input, bins, low, high: TensorType(input.dtype, (bins,), input.device))


@method()
def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """Count the elements in each of `bins` equal parts of min .. max (of the data, if equal).

    >>> import tracejit
    >>> tracejit.tensor([1.0, 2.0, 3.0]).histc(4).tolist()
    [1.0, 0.0, 1.0, 1.0]

    RuntimeError for a range that is not finite.
    """
    if input.dtype.category != FLOATING:
        raise NotImplementedError(
            f"\"histogram_cpu\" not implemented for '{SCALAR_NAMES[input.dtype.name]}'")
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if max < min:
        raise RuntimeError("torch.histc: max must be larger than min")
    return histogram_record(input, bins=int(bins), low=float(min), high=float(max))
