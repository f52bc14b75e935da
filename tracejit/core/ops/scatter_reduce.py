"""Values reduced at a place: scatter_reduce, index_reduce; written in turn: put, masked_scatter.

In: a tensor, positions or a mask, values. Out: a copy of the tensor with the values put in.
Programs call the array library for reductions other than sums. Called by users.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.core.ops import creation, index_checks
from tracejit.core.ops.gather_scatter import (
    along,
    as_index,
    gather_record,
    index_add_record,
    index_put_record,
    index_record,
    scatter_add_record,
    scatter_record,
)
from tracejit.core.ops.movement import typed
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.pointwise_record import convert, must_be_real, must_be_tensors
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import broadcast, equal, hint, normalize_dim, numel
from tracejit.core.ops.types import SCALAR_NAMES, bool_, int64

_REDUCTIONS = {"sum": "add", "prod": "multiply", "mean": "add", "amax": "maximum",
               "amin": "minimum"}  # fmt: skip
_NEUTRAL = {"sum": 0, "prod": 1, "mean": 0}


def _neutral(reduce: str, kind: Any) -> Any:
    """Return the value that changes no other value."""
    if reduce in _NEUTRAL:
        return _NEUTRAL[reduce]
    if kind.kind == "f":
        return -np.inf if reduce == "amax" else np.inf
    if kind.kind == "b":
        return reduce == "amin"
    limits = np.iinfo(kind)
    return limits.min if reduce == "amax" else limits.max


def _combine_at(xp: Any, name: str, whole: Any, place: tuple, values: Any) -> None:
    """Combine values into `whole` at `place`, each as often as it is named."""
    if xp is np or name != "multiply":
        getattr(xp, name).at(whole, place, values)
        return
    host = xp.asnumpy(whole)  # CuPy's `multiply` has no `at`
    np.multiply.at(host, tuple(map(xp.asnumpy, place)), xp.asnumpy(values))
    whole[...] = xp.asarray(host)


def reduced_array(xp: Any, x: Any, index: Any, src: Any, dim: int, reduce: str,
                  include_self: bool) -> Any:
    """Compute `scatter_reduce` of arrays, by the array library."""
    kind = x.dtype
    wide = kind
    if kind.kind not in "iubc" and kind.itemsize < 8:  # sums may take any number of elements
        wide = np.dtype(np.float64 if _REDUCTIONS[reduce] == "add" else np.float32)
    place = along(xp, x, index, dim)
    whole = xp.array(x, wide, order="C")
    if not include_self:
        whole[place] = _neutral(reduce, wide)
    _combine_at(xp, _REDUCTIONS[reduce], whole, place, src.astype(wide))
    if reduce == "mean":
        count = xp.ones(whole.shape, np.int64)
        if not include_self:
            count[place] = 0
        xp.add.at(count, place, 1)
        count = xp.maximum(count, 1).astype(wide)
        whole = whole // count if wide.kind in "iub" else whole / count
    return whole.astype(kind, copy=False)


def _flag(condition: Any, like: Any) -> Any:
    return convert(condition, like.dtype)


def _counts(grad: Any, index: Any, dim: int, include_self: bool) -> Any:
    """Count the values that each element averages."""
    ones = creation.full_of(grad, tuple(index.shape), 1, grad.dtype, grad.device)
    own = creation.full_of(grad, tuple(grad.shape), 1, grad.dtype, grad.device)
    own = own if include_self else _without(own, index, dim)
    count = scatter_add_record(own, index, ones, dim=dim)
    return where(count == 0, 1, count)


def _without(x: Any, index: Any, dim: int) -> Any:
    """Return x with zeros at the places written to."""
    zeros = creation.full_of(x, tuple(index.shape), 0, x.dtype, x.device)
    return scatter_record(x, index, zeros, dim=dim)


def _shares(grad: Any, input: Any, index: Any, src: Any, out: Any, dim: int) -> tuple:
    """Return where `input` and `src` equal an extreme, and its gradient for each."""
    own, theirs = _flag(input == out, grad), _flag(src == gather_record(out, index, dim=dim), grad)
    share = grad / scatter_add_record(own, index, theirs, dim=dim)
    return own, theirs, share


def _input_rule(grad: Any, input: Any, index: Any, src: Any, out: Any, dim: int, reduce: str,
                include_self: bool) -> Any:
    if reduce == "mean":
        grad = grad / _counts(grad, index, dim, include_self)
    elif reduce == "prod":
        nonzero = where(input == 0, 1, input)
        product = reduce_record(nonzero, index, src, dim=dim, reduce="prod",
                                include_self=include_self)
        grad = grad * product / nonzero
    elif reduce != "sum":
        own, _, share = _shares(grad, input, index, src, out, dim)
        grad = own * share
    return grad if include_self else _without(grad, index, dim)


def _src_rule(grad: Any, input: Any, index: Any, src: Any, out: Any, dim: int, reduce: str,
              include_self: bool) -> Any:
    def at(x: Any) -> Any:
        return gather_record(x, index, dim=dim)

    if reduce == "sum":
        return at(grad)
    if reduce == "mean":
        return at(grad / _counts(grad, index, dim, include_self))
    if reduce == "prod":
        none = creation.full_of(grad, tuple(grad.shape), 0, grad.dtype, grad.device)
        zeros = at(scatter_add_record(none, index, _flag(src == 0, grad), dim=dim))
        single, pair = (src == 0) & (zeros == 1), (src == 0) & (zeros == 2)
        rest = reduce_record(input, index, where(single | pair, 1, src), dim=dim, reduce="prod",
                             include_self=include_self)
        # Of two zeros, the derivative of each is the other: 0, but with a derivative of its own.
        both = scatter_add_record(none, index, where(pair, src, 0), dim=dim)
        single_or_pair = where(pair, at(both) - src, 1) * at(grad * rest)
        return where(single | pair, single_or_pair, at(grad * out) / where(src == 0, 1, src))
    _, theirs, share = _shares(grad, input, index, src, out, dim)
    return theirs * at(share)


reduce_record: Op = Op(
    "scatter_reduce", "extern", ("input", "index", "src"), eager=reduced_array, may_fail=True,
    infer=lambda input, index, src, dim, reduce, include_self: typed(input, input.shape),
    rules={"input": _input_rule, "src": _src_rule},
)  # fmt: skip


@method()
def scatter_reduce(input: Any, dim: int, index: Any, src: Any, reduce: str, *,
                   include_self: bool = True) -> Any:
    """Reduce the values src[i][j] that belong at [index[i][j]][j] (for dim 0) of `input` to one.

    reduce: "sum", "prod", "mean", "amax" or "amin"; include_self: reduce the value of `input` with
    them.

    >>> import tracejit
    >>> index, src = tracejit.tensor([0, 1, 1]), tracejit.tensor([2.0, 3.0, 4.0])
    >>> tracejit.ones(3).scatter_reduce(0, index, src, "amax").tolist()
    [2.0, 4.0, 1.0]

    RuntimeError for positions outside of the dimension, and for dtypes that differ.
    """
    if reduce not in _REDUCTIONS:
        raise RuntimeError("reduce argument must be either sum, prod, mean, amax or amin, got "
                           f"{reduce}")
    if reduce in ("amax", "amin"):
        must_be_real(f"\"scatter_gather_tensor_cpu_reduce_{reduce}\" not implemented for '{{}}'",
                     (input,))
    must_be_tensors("scatter_reduce", ("src",), (src,))
    data, places, values, k = index_checks.of_scatter(input, dim, index, src, "scatter")
    result = reduce_record(data, places, values, dim=k, reduce=reduce,
                           include_self=bool(include_self))
    return result if input.shape else result.reshape(())


@method()
def index_reduce(input: Any, dim: int, index: Any, source: Any, reduce: str, *,
                 include_self: bool = True) -> Any:
    """Reduce the slices of `source` that have the same position in `index` (n,), along dimension
    `dim`.

    They are reduced as `scatter_reduce` does, with "prod", "mean", "amax" or "amin": RuntimeError
    for others.

    >>> import tracejit
    >>> x, index = tracejit.ones(2), tracejit.tensor([0, 0])
    >>> x.index_reduce(0, index, tracejit.tensor([2.0, 3.0]), "prod")
    tensor([6., 1.])
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError("index_reduce(): Expected reduce to be one of prod, mean, amax or amin "
                           f"but got {reduce}.")
    must_be_real("\"index_func_\" not implemented for '{}'", (input,))
    k = normalize_dim(dim, len(input.shape))
    if not input.shape:
        return index_reduce(input.reshape(1), 0, index, source.reshape(-1), reduce,
                            include_self=include_self).reshape(())
    places = as_index(index).reshape(-1)
    if not equal(places.shape[0], source.shape[k]):
        raise RuntimeError(f"index_reduce_(): Number of indices ({hint(places.shape[0])}) should "
                           f"be equal to source.size(dim): ({hint(source.shape[k])}), for dim: {k}")
    if source.dtype is not input.dtype:
        raise RuntimeError("index_reduce_(): self and source expected to have the same dtype, but "
                           f"got (self) {input.dtype} and (source) {source.dtype}")
    shape = tuple(-1 if d == k else 1 for d in range(len(source.shape)))
    wide = places.reshape(shape).expand(tuple(source.shape))
    return reduce_record(input, wide, source, dim=k, reduce=reduce,
                         include_self=bool(include_self))


# -- one value after the other ---------------------------------------------------------------------
@method()
def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """Write the elements of `source` at linear positions `index` of a copy of `input`, or add them.

    >>> import tracejit
    >>> tracejit.zeros(2, 2).put(tracejit.tensor([1, -1]), tracejit.tensor([5.0, 6.0])).tolist()
    [[0.0, 5.0], [0.0, 6.0]]

    IndexError for positions outside, and where there are not as many elements as positions.
    """
    if index.dtype is not int64:
        raise RuntimeError("put_(): Expected a long tensor for index, but got "
                           f"{SCALAR_NAMES[index.dtype.name]}")
    if source.dtype is not input.dtype:
        names = [SCALAR_NAMES[x.dtype.name] for x in (input, source)]
        raise RuntimeError("put_(): self and source expected to have the same dtype, but got "
                           f"self.dtype = {names[0]} and source.dtype = {names[1]}")
    counts = numel(source.shape), numel(index.shape)
    if not equal(*counts):
        raise IndexError("put_(): Expected source and index to have the same number of elements, "
                         f"but got source.numel() = {hint(counts[0])}, index.numel() = "
                         f"{hint(counts[1])}")
    record = index_add_record if accumulate else index_put_record
    flat = record(input.reshape((-1,)), source.reshape((-1,)), index.reshape((-1,)), dims=(0,),
                  wrap=True)
    return flat.reshape(tuple(input.shape))


def _check_enough(xp: Any, mask: Any, source: Any) -> Any:
    """Return which element of the source goes to each element of the mask (0 where none does)."""
    if int(xp.count_nonzero(mask)) > source.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    places = xp.cumsum(mask.reshape(-1), dtype=xp.int64) - 1
    return xp.where(mask, places.reshape(mask.shape), 0)


masked_places_record = Op(
    "masked_places", "extern", ("mask", "source"), eager=_check_enough, may_fail=True,
    infer=lambda mask, source: typed(mask, mask.shape)._replace(dtype=int64),
)  # fmt: skip


@method()
def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """Write the first elements of `source` into a copy of `input`, in order, where `mask` holds.

    >>> import tracejit
    >>> mask = tracejit.tensor([True, False, True])
    >>> tracejit.zeros(3).masked_scatter(mask, tracejit.tensor([1.0, 2.0, 3.0])).tolist()
    [1.0, 0.0, 2.0]

    RuntimeError for a mask that is not bool, and where `source` has too few elements.
    """
    if source.dtype is not input.dtype:
        names = [SCALAR_NAMES[x.dtype.name] for x in (input, source)]
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes but got"
                           f"{names[0]} and {names[1]}")
    if mask.dtype is not bool_:
        raise RuntimeError("masked_scatter_ only supports boolean masks, but got mask with dtype "
                           f"{SCALAR_NAMES[mask.dtype.name]}")
    shape = broadcast(input.shape, mask.shape)
    input, mask = input.expand(shape), mask.expand(shape)
    flat = source.reshape((-1,))
    places = masked_places_record(mask, flat)
    if equal(flat.shape[0], 0):
        return input.clone()
    return where(mask, index_record(flat, places, dims=(0,), wrap=False), input)
