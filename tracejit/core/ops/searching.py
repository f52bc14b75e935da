"""Places of values in ordered ones, and membership: searchsorted, bucketize, isin.

In: ordered values along the last dimension, and values. Out: positions, or bools. Programs call the
array library here. Called by users.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.core.ops.creation import full_of
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_record import convert, is_tensor, must_be_real
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import as_size, equal, shape_text
from tracejit.core.ops.types import FLOATING, INTEGER, TensorType, bool_, int32, int64, result_type


def _places(xp: Any, ordered: Any, values: Any, *sorter: Any, right: bool, short: bool) -> Any:
    if sorter:
        order = sorter[0]
        if order.size and (int(order.min()) < 0 or int(order.max()) >= ordered.shape[-1]):
            raise RuntimeError("torch.searchsorted(): sorter index out of range")
        ordered = xp.take_along_axis(ordered, order, -1)
    if ordered.dtype.kind == "V":  # bfloat16
        ordered, values = ordered.astype(np.float32), values.astype(np.float32)
    floats = ordered.dtype.kind == "f"
    if ordered.ndim == 1 and not (floats and (xp.isnan(ordered).any() or xp.isnan(values).any())):
        found = xp.searchsorted(ordered, values, "right" if right else "left")
    else:
        found = _bisected(xp, ordered, values, right)
    return xp.asarray(found).astype(np.int32 if short else np.int64)


def _bisected(xp: Any, ordered: Any, values: Any, right: bool) -> Any:
    """Halve the rest again and again. An element compared with nan lies before the value."""
    low, high = xp.zeros(values.shape, np.int64), xp.full(values.shape, ordered.shape[-1])
    while (low < high).any():
        middle = (low + high) // 2
        place = xp.minimum(middle, ordered.shape[-1] - 1)
        at = ordered[place] if ordered.ndim == 1 else xp.take_along_axis(ordered, place, -1)
        before = ~(at > values if right else at >= values)
        low, high = (xp.where((low < high) & before, middle + 1, low),
                     xp.where((low < high) & ~before, middle, high))
    return low


searchsorted_record = Op(
    "searchsorted", "extern", ("ordered", "values", "*sorter"), eager=_places, may_fail=True,
    infer=lambda ordered, values, *sorter, right, short: TensorType(
        int32 if short else int64, tuple(values.shape), ordered.device),
)  # fmt: skip


def _found(ordered: Any, values: Any, sorter: tuple, right: bool, out_int32: bool) -> Any:
    """Search with both in their common dtype; numbers as 0-dim tensors."""
    must_be_real("\"searchsorted_out_cpu\" not implemented for '{}'", (ordered, values))
    common = result_type(ordered, values)
    if common is bool_:
        raise NotImplementedError("\"searchsorted_out_cpu\" not implemented for 'Bool'")
    if not is_tensor(values):
        values = full_of(ordered, (), values, common, ordered.device)
    return searchsorted_record(convert(ordered, common), convert(values, common), *sorter,
                               right=bool(right), short=bool(out_int32))


@method()
def searchsorted(sorted_sequence: Any, input: Any, *, out_int32: bool = False, right: bool = False,
                 side: str | None = None, sorter: Any = None) -> Any:
    """Return the places at which to insert the elements of `input` (a tensor or a number).

    There the last dimension of `sorted_sequence` stays in order.

    sorted_sequence (..., n), input (..., m) with the same dimensions before the last, or of any
    shape where `sorted_sequence` has one dimension; out as `input`, int64 or int32. right, side
    "right": after equal elements. sorter (..., n): the order of `sorted_sequence`.

    >>> import tracejit
    >>> tracejit.searchsorted(tracejit.tensor([1, 3, 5]), tracejit.tensor([0, 3, 9]), right=True)
    tensor([0, 2, 3])

    RuntimeError where shapes do not fit, and for `side` and `right` that disagree.
    """
    rule = "torch.searchsorted(): "
    if side not in (None, "left", "right"):
        raise RuntimeError(f"{rule}side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(f"{rule}side and right can't be set to opposites, got side of left "
                           "while right was True")
    ndim = len(sorted_sequence.shape)
    if ndim == 0:
        raise RuntimeError(f"{rule}boundaries tensor should have positive dimension, but got 0 "
                           "dimension")
    if ndim > 1 and (not is_tensor(input) or not input.shape):
        raise RuntimeError(f"{rule}input value can be a scalar only when boundaries tensor "
                           f"dimension is 1, but we got boundaries tensor dim({ndim}) and input "
                           "value's dim(0) numel(1)")
    if ndim > 1 and not _same_rows(sorted_sequence, input):
        raise RuntimeError(f"{rule}boundaries tensor should be 1 dimension or the first N-1 "
                           "dimensions of boundaries tensor and input value tensor must match, but "
                           f"we got boundaries tensor {shape_text(sorted_sequence.shape)} and "
                           f"input value tensor {shape_text(input.shape)}")
    if sorter is not None:
        _check_sorter(sorted_sequence, sorter)
    return _found(sorted_sequence, input, () if sorter is None else (sorter,),
                  right or side == "right", out_int32)


def _same_rows(a: Any, b: Any) -> bool:
    return len(a.shape) == len(b.shape) and all(map(equal, a.shape[:-1], b.shape[:-1]))


def _check_sorter(ordered: Any, sorter: Any) -> None:
    if len(sorter.shape) != len(ordered.shape) or not all(map(equal, sorter.shape, ordered.shape)):
        raise RuntimeError("torch.searchsorted(): boundary and sorter must have the same size, but "
                           f"got boundary tensor {shape_text(ordered.shape)}and got sorter tensor "
                           f"{shape_text(sorter.shape)}")
    if sorter.dtype is not int64:
        name = "Float" if sorter.dtype.category == FLOATING else sorter.dtype.name.capitalize()
        raise RuntimeError("torch.searchsorted(): sorter must be a tensor of long dtype but got "
                           f"dtype {name}")


def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """Return the number i of each element's bucket: boundaries[i - 1] < x <= boundaries[i].

    With `right`: boundaries[i - 1] <= x < boundaries[i]. `input` may be a number.

    >>> import tracejit
    >>> tracejit.bucketize(tracejit.tensor([3, 6, 9]), tracejit.tensor([1, 3, 5, 7, 9]))
    tensor([1, 3, 4])

    RuntimeError unless `boundaries` is a vector.
    """
    if len(boundaries.shape) != 1:
        raise RuntimeError("boundaries tensor must be 1 dimension, but got "
                           f"dim({len(boundaries.shape)})")
    return _found(boundaries, input, (), right, out_int32)


# -- membership ------------------------------------------------------------------------------------
def _among(xp: Any, elements: Any, test_elements: Any, invert: bool) -> Any:
    if elements.dtype.kind == "V":  # bfloat16
        elements, test_elements = elements.astype(np.float32), test_elements.astype(np.float32)
    return xp.isin(elements, test_elements, invert=invert)


isin_record = Op(
    "isin", "extern", ("elements", "test_elements"), eager=_among,
    infer=lambda elements, test_elements, invert: TensorType(
        bool_, tuple(elements.shape), elements.device),
)  # fmt: skip


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False,
         invert: bool = False) -> Any:
    """Return True for each element among `test_elements`, in the shape of `elements`; with
    `invert`, for all others.

    Either argument may be a number.

    >>> import tracejit
    >>> tracejit.isin(tracejit.tensor([1, 2, 3]), tracejit.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    given = elements, test_elements
    unsupported = "Unsupported input type encountered for isin(): {}"
    must_be_real(unsupported, given, RuntimeError)
    if any(x.dtype is bool_ if is_tensor(x) else isinstance(x, bool) for x in given):
        raise RuntimeError(unsupported.format("Bool"))
    common = result_type(elements, test_elements)
    like = elements if is_tensor(elements) else test_elements
    both = [convert(x, common) if is_tensor(x) else full_of(like, (), x, common, like.device)
            for x in given]
    return isin_record(*both, invert=bool(invert))


# -- positions -------------------------------------------------------------------------------------
def unravel_index(indices: Any, shape: Any) -> tuple:
    """Turn linear positions into positions in a tensor of `shape`: a tensor for each dimension.

    >>> import tracejit
    >>> rows, columns = tracejit.unravel_index(tracejit.tensor([1, 5]), (2, 3))
    >>> rows.tolist(), columns.tolist()
    ([0, 1], [1, 2])

    TypeError for positions that are no integers.
    """
    if indices.dtype.category != INTEGER:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if is_tensor(shape) or not isinstance(shape, (int, Sequence)):
        raise TypeError("expected 'shape' to be int or sequence of ints, but got "
                        f"{type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in sizes:
        if not hasattr(size, "__index__"):
            raise TypeError("expected 'shape' sequence to only contain ints, but got "
                            f"{type(size)}")
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    places, indices = [], convert(indices, int64)
    for size in reversed(sizes):
        places.append(indices % size)
        indices = indices // size
    return tuple(reversed(places))


def _first_positions(xp: Any, x: Any, size: int, fill_value: int) -> Any:
    found = xp.argwhere(x)[:size]
    result = xp.full((size, x.ndim), fill_value, xp.int64)
    result[: found.shape[0]] = found
    return result


first_positions_record = Op(
    "nonzero_static", "extern", ("input",), eager=_first_positions,
    infer=lambda input, size, fill_value: TensorType(
        int64, (size, len(input.shape)), input.device),
)  # fmt: skip


@method()
def nonzero_static(input: Any, *, size: Any, fill_value: int = -1) -> Any:
    """Return the first `size` positions of `nonzero`, filled up with `fill_value`.

    The shape depends on no values, so it does not end a captured program.

    >>> import tracejit
    >>> tracejit.nonzero_static(tracejit.tensor([1, 0, 3]), size=3).tolist()
    [[0], [2], [-1]]

    RuntimeError for a negative size.
    """
    count = as_size(size)
    if count < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    return first_positions_record(input, size=count, fill_value=int(fill_value))
