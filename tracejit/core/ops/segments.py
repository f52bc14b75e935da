"""Reductions of segments: neighbours along a dimension, as many as asked for, become one element.

In: floating tensors, and the lengths of segments or where they begin and end. Out: a tensor with
one element for each segment. Called by users as `tracejit.segment_reduce`.
"""

from __future__ import annotations

import math
from typing import Any

from tracejit.core.ops import creation
from tracejit.core.ops.gather_scatter import gather_record, scatter_add_record
from tracejit.core.ops.movement import typed
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.random import within_record
from tracejit.core.ops.record import Op
from tracejit.core.ops.scan import cumsum
from tracejit.core.ops.scatter_reduce import reduced_array
from tracejit.core.ops.searching import searchsorted
from tracejit.core.ops.types import FLOATING, SCALAR_NAMES

_KINDS = {"sum": (0.0, "sum"), "mean": (0.0, "sum"), "max": (-math.inf, "amax"),
          "min": (math.inf, "amin"), "prod": (1.0, "prod")}  # fmt: skip


def _rule(grad: Any, start: Any, index: Any, data: Any, out: Any, dim: int, reduce: str) -> Any:
    """Give an extreme's gradient to the elements that equal it, or are NaN, never to `start`."""
    def at(x: Any) -> Any:
        return gather_record(x, index, dim=dim)

    def others(flags: Any) -> Any:
        """Count the other elements of an element's segment that have a flag."""
        flags = convert(flags, grad.dtype)
        none = creation.full_of(grad, tuple(grad.shape), 0, grad.dtype, grad.device)
        return at(scatter_add_record(none, index, flags, dim=dim)) - flags

    if reduce == "sum":
        return at(grad)
    if reduce == "prod":
        special = (data == 0) | data.isnan()
        ordinary = where(special, 1, data)
        rest = at(_record(start, index, ordinary, dim=dim, reduce=reduce)) / ordinary
        rest = where(others(data == 0) > 0, 0, rest)
        return at(grad) * where(others(data.isnan()) > 0, math.nan, rest)
    chosen = (data == at(out)) | data.isnan()
    return where(chosen, at(grad) / (others(chosen) + 1), 0)


_record: Op = Op("segment_reduce", "extern", ("start", "index", "data"), may_fail=True,
                 eager=lambda xp, start, index, data, dim, reduce: reduced_array(
                     xp, start, index, data, dim, reduce, include_self=True),
                 infer=lambda start, index, data, dim, reduce: typed(start, start.shape),
                 rules={"data": _rule})


def segment_reduce(data: Any, reduce: str, *, lengths: Any = None, indices: Any = None,
                   offsets: Any = None, axis: int = 0, unsafe: bool = False,
                   initial: float | None = None) -> Any:
    """Return the sum, mean, max, min or product of each segment of dimension `axis`.

    lengths  (..., segments) of integers: how many elements belong to each
    offsets  instead of lengths, (..., segments + 1): where segments begin, and where the last ends
    unsafe   lengths need not add up to the size of the dimension
    initial  what each reduction begins with; without it an empty mean is NaN, an empty max -inf

    >>> import tracejit
    >>> x = tracejit.tensor([1.0, 2.0, 3.0])
    >>> tracejit.segment_reduce(x, "sum", lengths=tracejit.tensor([2, 0, 1])).tolist()
    [3.0, 0.0, 3.0]

    RuntimeError where lengths do not fit, NotImplementedError for dtypes that are not floating.
    """
    kind = {"amax": "max", "amin": "min"}.get(reduce, reduce)
    if kind not in _KINDS:
        raise RuntimeError("reduce argument must be either sum, prod, mean, amax or amin, got "
                           f"{reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if data.dtype.category != FLOATING:
        raise NotImplementedError("\"_segment_reduce_cpu\" not implemented for "
                                  f"'{SCALAR_NAMES[data.dtype.name]}'")
    if offsets is not None:
        starts, ends = offsets.narrow(-1, 0, offsets.shape[-1] - 1), offsets.narrow(
            -1, 1, offsets.shape[-1] - 1)
        counts = ends - starts
    else:
        counts = lengths
        if not unsafe:
            counts = _checked(lengths, data)
        ends = cumsum(counts, -1)
    dim = len(counts.shape) - 1
    places = creation.arange(data.shape[dim], device=data.device)
    wide = places.expand((*counts.shape[:-1], data.shape[dim])).contiguous()
    segments = searchsorted(ends.contiguous(), wide, right=True)
    begin, how = _KINDS[kind]
    begin = begin if initial is None else float(initial)
    count = counts.shape[-1]
    shape = (*data.shape[:dim], count + 1, *data.shape[dim + 1:])  # the last takes the rest
    start = creation.full_of(data, shape, begin, data.dtype)
    rest = (1,) * (len(data.shape) - dim - 1)
    index = segments.reshape((*segments.shape, *rest)).expand(tuple(data.shape))
    found = _record(start, index, data, dim=dim, reduce=how).narrow(dim, 0, count)
    if kind != "mean":
        return found
    divisors = counts.reshape((*counts.shape, *rest)).to(data.dtype)
    empty = math.nan if initial is None else found
    return where(divisors > 0, found / divisors, empty)


def _checked(lengths: Any, data: Any) -> Any:
    """Check that lengths are not negative and add up; return them."""
    positive = within_record(lengths, low=0, high=math.inf,
                             message="lengths contains negative value!")
    size = data.shape[len(lengths.shape) - 1]
    within_record(positive.sum(-1) - size, low=0, high=0, message=(
        "segment_reduce(): Expected all rows of lengths along axis to sum to "
        "data.size(lengths.dim()-1) when !unsafe."))
    return positive
