"""Elements at a place in the order: median, nanmedian, kthvalue; and the most frequent: mode.

In: a tensor, and a dimension. Out: values, and where they were; the median of a whole tensor alone.

NaN counts as the largest, and a median with a NaN is NaN. Gradients go to the picked element. Those
of a whole tensor's median go to all elements that equal it, in equal parts.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.core.ops.accumulation import accumulated
from tracejit.core.ops.composite import composite
from tracejit.core.ops.creation import full, zeros_of
from tracejit.core.ops.gather_scatter import gather_record, scatter_add_record
from tracejit.core.ops.movement import squeeze_record
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_logic import clamp_min, isnan
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.record import Op
from tracejit.core.ops.reduction_record import (
    extreme_or_nan_rule,
    reduced_shape,
    restored,
    sum_record,
)
from tracejit.core.ops.shapes import as_size, hint, normalize_dim, numel
from tracejit.core.ops.sorting import sort_record
from tracejit.core.ops.types import COMPLEX, FLOATING, SCALAR_NAMES, TensorType, bool_, int64

MedianResult = namedtuple("median", ["values", "indices"])  # type: ignore[name-match]
NanmedianResult = namedtuple("nanmedian", ["values", "indices"])  # type: ignore[name-match]
ModeResult = namedtuple("mode", ["values", "indices"])  # type: ignore[name-match]
KthvalueResult = namedtuple("kthvalue", ["values", "indices"])  # type: ignore[name-match]

Place = Callable[..., Any]  # (sorted values, dim, **attributes) -> int64, one place for each row


def _middle(values: Any, dim: int) -> Any:
    """Return the lower of two middles; the last place where its element is nan."""
    size = values.shape[dim]
    last = values.narrow(dim, size - 1, 1)  # nan, if the row has one
    middle = convert(last != last, int64) * (size - 1 - (size - 1) // 2)
    return middle + (size - 1) // 2


def _middle_of_numbers(values: Any, dim: int) -> Any:
    """Return the lower middle of the elements that are not nan; the first where all are."""
    numbers = values == values if values.dtype.category < FLOATING else ~isnan(values)
    count = sum_record(convert(numbers, int64), dims=(dim,), keepdim=True)
    return clamp_min((count - 1) // 2, 0)


def _kth(values: Any, dim: int, k: Any) -> Any:
    first = values.narrow(dim, 0, 1)
    return convert(first != first, int64) * 0 + (k - 1)


def _scatter_back(grad: Any, input_type: TensorType, indices: Any, dim: int, keepdim: bool) -> Any:
    zeros = zeros_of(grad, input_type._replace(dtype=grad.dtype))
    where_to, what = (restored(x, (dim,), keepdim) for x in (indices, grad))
    return scatter_add_record(zeros, where_to, what, dim=dim)


def _picked_types(input: Any, dim: int, keepdim: bool, **attributes: Any) -> tuple:
    shape = reduced_shape(input.shape, (dim,), keepdim)
    return (TensorType(input.dtype, shape, input.device), TensorType(int64, shape, input.device))


def _along(name: str, place: Place, node_name: str) -> Op:
    """Make the record of the elements at a place along a dimension, and where they are."""

    def body(input: Any, dim: int, keepdim: bool, **attributes: Any) -> tuple[Any, Any]:
        values, indices = sort_record(input, dim=dim, descending=False)
        at = place(values, dim, **attributes)
        found = [gather_record(x, at, dim=dim) for x in (values, indices)]
        picked = found if keepdim else [squeeze_record(x, dims=(dim,)) for x in found]
        return picked[0], picked[1]

    return composite(name, ("input",), body, infer=_picked_types, node_name=node_name,
                     outputs=("values", "indices"), input=_scatter_back)  # fmt: skip



median_along = _along("median_along", _middle, "MedianBackward1")
nanmedian_along = _along("nanmedian_along", _middle_of_numbers, "NanmedianBackward1")
kthvalue_along = _along("kthvalue_along", _kth, "KthvalueBackward0")


def _whole(name: str, along: Op) -> Op:
    """Make the record of the median of all elements."""

    def body(input: Any) -> Any:
        return along(input.reshape((-1,)), dim=0, keepdim=False)[0]

    def rule(grad: Any, input: Any, out: Any) -> Any:
        return extreme_or_nan_rule(grad, input, out, tuple(range(len(input.shape))), False)

    return composite(
        name, ("input",), body, input=rule,
        infer=lambda input: TensorType(input.dtype, (), input.device),
    )  # fmt: skip


median_record, nanmedian_record = (
    _whole("median", median_along), _whole("nanmedian", nanmedian_along),
)  # fmt: skip


def _check(input: Any, name: str) -> None:
    if input.dtype is bool_ or input.dtype.category == COMPLEX:
        kind = SCALAR_NAMES[input.dtype.name]
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{kind}'")


def _row(input: Any, dim: int, name: str) -> int:
    """Return the dimension, counted from the front. IndexError if it has no elements."""
    k = normalize_dim(dim, len(input.shape))
    if input.shape and input.shape[k] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {k} to have non-zero size.")
    return k


def _picked(record: Op, input: Any, dim: int, keepdim: bool, **attributes: Any) -> tuple:
    if input.shape:
        return record(input, dim=dim, keepdim=bool(keepdim), **attributes)
    values, indices = record(input.reshape((1,)), dim=0, keepdim=False, **attributes)
    return values, indices


@method()
def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median, the lower of two: median(x). With `dim`: (values, indices) along it.

    >>> import tracejit
    >>> tracejit.tensor([3.0, 1.0, 2.0, 4.0]).median()
    tensor(2.)

    IndexError for a dimension without elements.
    """
    if dim is None:
        return _median_of_all(median_record, input)
    _check(input, "median")
    return MedianResult(*_picked(median_along, input, _row(input, dim, "median"), keepdim))


@method()
def nanmedian(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the `median` of the elements that are not nan, in its shape; nan where all are.

    >>> import tracejit
    >>> tracejit.tensor([3.0, tracejit.nan, 1.0]).nanmedian()
    tensor(1.)
    """
    if dim is None:
        return _median_of_all(nanmedian_record, input)
    _check(input, "median")
    row = _row(input, dim, "nanmedian")
    return NanmedianResult(*_picked(nanmedian_along, input, row, keepdim))


def _median_of_all(record: Op, input: Any) -> Any:
    if numel(input.shape) == 0:  # NaN, and for other dtypes whatever NaN converts to
        if input.dtype.category == FLOATING:
            return input.sum() * float("nan")
        return convert(full((), float("nan"), device=input.device), input.dtype)
    _check(input, "median")
    return record(input)


@method()
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """Return (values, indices) of the `k`-th smallest elements along `dim`; the first is number 1.

    Both lack dimension `dim`, or keep it with size 1. RuntimeError where there are fewer,
    IndexError where there are none.

    >>> import tracejit
    >>> tracejit.tensor([3.0, 1.0, 2.0]).kthvalue(2).values
    tensor(2.)
    """
    row, number = _row(input, dim, "kthvalue"), as_size(k)
    size = input.shape[row] if input.shape else 1
    if number < 1 or number > size:
        raise RuntimeError(
            f"kthvalue(): selected number k out of range for dimension {hint(row)}"
        )
    if input.shape or input.dtype.category == COMPLEX:
        _check(input, "kthvalue")
    return KthvalueResult(*_picked(kthvalue_along, input, row, keepdim, k=number))


# -- the most frequent -----------------------------------------------------------------------------
def _mode_array(xp: Any, x: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    rows = xp.moveaxis(x, dim, -1)
    order = xp.argsort(rows.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind != "i"
                       else rows, axis=-1, kind="stable")
    ordered = xp.take_along_axis(rows, order, -1)
    place = xp.broadcast_to(xp.arange(x.shape[dim]), ordered.shape)
    starts = xp.ones(ordered.shape, bool)
    starts[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    first = accumulated(xp, "maximum", xp.where(starts, place, 0), -1)
    longest = xp.argmax(place - first, axis=-1)[..., None]  # the end of the first longest run
    found = (xp.take_along_axis(ordered, longest, -1), xp.take_along_axis(order, longest, -1))
    values, indices = (xp.moveaxis(y, -1, dim) if keepdim else y[..., 0] for y in found)
    return values, indices


mode_record: Op = Op(
    "mode", "extern", ("input",), outputs=("values", "indices"), infer=_picked_types,
    eager=_mode_array, rules={"input": _scatter_back},
)  # fmt: skip


@method()
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """Return (values, indices) of the most frequent elements along `dim`, the smallest of several.

    The index is that of the last of them.

    >>> import tracejit
    >>> tracejit.tensor([1, 2, 2, 3, 3]).mode().values
    tensor(2)

    IndexError for a dimension without elements.
    """
    if input.dtype.category == COMPLEX:
        _check(input, "mode")
    return ModeResult(*_picked(mode_record, input, _row(input, dim, "mode"), keepdim))
