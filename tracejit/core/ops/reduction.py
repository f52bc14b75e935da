"""Reductions: many elements to one, along dimensions.

In: a tensor, `dim` (None, an int or several), `keepdim`, `dtype`. Out: tensors with those
dimensions gone or of size 1. Called by users, by gradient rules (un-broadcasting is a sum), by
`nn`.

The records take `dims` (sorted, >= 0) and `keepdim`; the functions normalise PyTorch's arguments to
that. A mean divides a sum by the number of elements, which may be a symbolic size. A size is an
operand of `div` as any Python number is, and no size is frozen. float16 and bfloat16 accumulate in
float32.
"""

from __future__ import annotations

import builtins
from collections import namedtuple
from typing import Any

from tracejit.core.ops import pointwise
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.composite import composite
from tracejit.core.ops.creation import zeros_of
from tracejit.core.ops.direct_calls import Direct
from tracejit.core.ops.gather_scatter import gather_record, scatter_add_record
from tracejit.core.ops.movement import given, squeeze_record
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise import convert, is_tensor
from tracejit.core.ops.pointwise_record import must_be_tensors
from tracejit.core.ops.record import Op
from tracejit.core.ops.reduction_record import (
    all_record,
    amax_record,
    amin_record,
    any_record,
    argmax_record,
    argmin_record,
    max_record,
    min_record,
    prod_record,
    sum_record,
)  # fmt: skip
from tracejit.core.ops.reduction_record import reduced_shape as reduced_shape
from tracejit.core.ops.reduction_record import restored as restored
from tracejit.core.ops.shapes import (
    broadcast_dims,
    equal,
    is_one,
    normalize_dim,
    normalize_dims,
    shape_text,
)
from tracejit.core.ops.types import (
    COMPLEX,
    FLOATING,
    SCALAR_NAMES,
    TensorType,
    bool_,
    dtype,
    int64,
    uint8,
)  # fmt: skip

# -- arguments ------------------------------------------------------------------------------------


_sum_direct, _max_direct, _argmax_direct = (
    Direct("reduction", name) for name in ("sum", "max", "argmax"))


def _summable(input: Any, d: dtype | None) -> Any:
    """Return `input` in the dtype of its sum: int64 for integers, unless told."""
    return convert(input, d or (input.dtype if input.dtype.category >= FLOATING else int64))


def _ordered(input: Any, name: str) -> Any:
    """Return `input`; raise PyTorch's error for complex numbers, in words of the kernel."""
    if input.dtype.category == COMPLEX:
        if "()" in name:
            raise RuntimeError(f"{name}: does not support complex input")
        kind = SCALAR_NAMES[input.dtype.name]
        raise NotImplementedError(f"\"{name}\" not implemented for '{kind}'")
    return input


def _with_places(input: Any, name: str) -> Any:
    """Return `input`; raise PyTorch's error if the place of its extreme cannot be asked for."""
    if input.dtype is bool_:
        raise RuntimeError(f"{name}: does not support bool input")
    return _ordered(input, name)


def _one_or_all(input: Any, dim: Any) -> int | None:
    """Return one dimension, or None; TypeError for several."""
    return None if dim is None else normalize_dim(dim, len(input.shape))


def _nonempty(input: Any, dim: Any, name: str) -> tuple[int, ...]:
    """Return the dimensions to reduce. IndexError or RuntimeError if one is empty."""
    dims = normalize_dims(dim, len(input.shape))
    for d in dims:
        if input.shape[d] != 0:
            continue
        if dim is None or dim == ():
            if name.startswith("arg"):
                raise IndexError(f"{name}(): Expected reduction dim to be specified for "
                                 "input.numel() == 0.")
            raise RuntimeError(f"{name}(): Expected reduction dim to be specified for "
                               "input.numel() == 0. Specify the reduction dim with the 'dim' "
                               "argument.")
        raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
    return dims


# -- sums -----------------------------------------------------------------------------------------


@method()
@autocasts(cuda="float32")
def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Any:
    """Sum over `dim` (None: all). Integers and bools sum in int64.

    >>> import tracejit
    >>> tracejit.tensor([[1, 2], [3, 4]]).sum(0).tolist()
    [4, 6]
    """
    if dtype is None:
        found = _sum_direct.direct(input, dim, keepdim)
        if found is not NotImplemented:
            return found
    dims = normalize_dims(dim, len(input.shape))
    return sum_record(_summable(input, dtype), dims=dims, keepdim=bool(keepdim))


@method()
def nansum(input: Any, dim: Any = None, keepdim: bool = False, *,
           dtype: dtype | None = None) -> Any:
    """Sum the elements that are not nan.

    >>> import tracejit
    >>> tracejit.tensor([1.0, tracejit.nan, 2.0]).nansum().item()
    3.0
    """
    if input.dtype.category == COMPLEX:
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if input.dtype.category >= FLOATING:
        input = pointwise.where(input != input, 0, input)
    return sum(input, dim, keepdim, dtype=dtype)


@method()
def sum_to_size(input: Any, *size: Any) -> Any:
    """Sum `input` so that it has shape `size`, the reverse of `expand`.

    RuntimeError where `size` does not expand to the shape of `input`.

    >>> import tracejit
    >>> tracejit.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    wanted = given(size)
    if not _expandable(wanted, tuple(input.shape)):
        raise RuntimeError(f"size {shape_text(wanted, '{}')} is not expandable to size "
                           f"{shape_text(input.shape, '{}')}.")
    repeated = broadcast_dims(input.shape, wanted)
    if wanted and not repeated:
        return input
    total = sum_record(_summable(input, None), dims=repeated, keepdim=True)
    return total if len(wanted) == len(input.shape) else total.reshape(wanted)


def _expandable(shape: tuple, target: tuple) -> bool:
    lead = len(target) - len(shape)
    return lead >= 0 and builtins.all(
        is_one(n) or equal(n, target[lead + k]) or n == 1 for k, n in enumerate(shape))


@method()
@autocasts(cpu="float32", cuda="float32")
def prod(input: Any, dim: int | None = None, keepdim: bool = False, *,
         dtype: dtype | None = None) -> Any:
    """Multiply over `dim` (None: all); 1 of nothing.

    >>> import tracejit
    >>> tracejit.tensor([2.0, 3.0, 4.0]).prod().item()
    24.0
    """
    dims = normalize_dims(_one_or_all(input, dim), len(input.shape))
    return prod_record(_summable(input, dtype), dims=dims, keepdim=bool(keepdim))


@method()
def count_nonzero(input: Any, *dims: Any, dim: Any = None) -> Any:
    """Count the elements that are not zero, over some dimensions or all.

    >>> import tracejit
    >>> tracejit.eye(2).count_nonzero(0, 1)
    tensor(2)
    """
    return sum(input != 0, dims if len(dims) > 1 else dims[0] if dims else dim)


# -- extremes -------------------------------------------------------------------------------------


@method()
def amax(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """Return the largest element over `dim` (none: all), or a nan; ties share the gradient.

    >>> import tracejit
    >>> tracejit.tensor([[1.0, 2.0], [3.0, 0.0]]).amax(1).tolist()
    [2.0, 3.0]
    """
    dims = _nonempty(_ordered(input, "max_values_cpu"), dim, "amax")
    return amax_record(input, dims=dims, keepdim=bool(keepdim))


@method()
def amin(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """Return the smallest element over the dimensions `dim` (none: all), or a nan; ties share the
    gradient.

    >>> import tracejit
    >>> tracejit.amin(tracejit.tensor([[1, 2], [3, 0]]), 1)
    tensor([1, 0])
    """
    dims = _nonempty(_ordered(input, "min_values_cpu"), dim, "amin")
    return amin_record(input, dims=dims, keepdim=bool(keepdim))


@method()
def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the position of the first largest element (of the first nan) along `dim`.

    Without `dim`: in the flat tensor.

    >>> import tracejit
    >>> tracejit.tensor([[1.0, 5.0], [7.0, 7.0]]).argmax(1).tolist()
    [1, 0]
    """
    found = _argmax_direct.direct(input, dim, keepdim)
    if found is not NotImplemented:
        return found
    dims = _nonempty(_with_places(input, "argmax()"), _one_or_all(input, dim), "argmax")
    return argmax_record(input, dims=dims, keepdim=bool(keepdim))


@method()
def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the position of the first smallest element (of the first nan) along dimension `dim`,
    int64; see `argmax`.

    >>> import tracejit
    >>> tracejit.argmin(tracejit.tensor([3, 1, 2]))
    tensor(1)
    """
    dims = _nonempty(_with_places(input, "argmin()"), _one_or_all(input, dim), "argmin")
    return argmin_record(input, dims=dims, keepdim=bool(keepdim))


AminmaxResult = namedtuple("aminmax", ["min", "max"])  # type: ignore[name-match]


@method()
def aminmax(input: Any, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return (min, max): the smallest and the largest element along `dim` (None: of all).

    >>> import tracejit
    >>> tracejit.tensor([3, 1, 2]).aminmax()
    tracejit.return_types.aminmax(
    min=tensor(1),
    max=tensor(3))
    """
    _ordered(input, "aminmax_cpu")
    if dim is None and builtins.any(size == 0 for size in input.shape):
        raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the "
                           "operation has no identity.")
    dims = _nonempty(input, _one_or_all(input, dim), "aminmax")
    return AminmaxResult(*(record(input, dims=dims, keepdim=bool(keepdim))
                           for record in (amin_record, amax_record)))


MaxResult = namedtuple("max", ["values", "indices"])  # type: ignore[name-match]
MinResult = namedtuple("min", ["values", "indices"])  # type: ignore[name-match]


def _along_dim(name: str, position: Op, node_name: str) -> Op:
    """Make the record of the extreme elements along a dimension, and where they are.

    Gradients go to just those.
    """
    def body(input: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
        indices = position(input, dims=(dim,), keepdim=True)
        values = gather_record(input, indices, dim=dim)
        if keepdim:
            return values, indices
        return squeeze_record(values, dims=(dim,)), squeeze_record(indices, dims=(dim,))

    def types(input: Any, dim: int, keepdim: bool) -> tuple[TensorType, TensorType]:
        shape = reduced_shape(input.shape, (dim,), keepdim)
        return (TensorType(input.dtype, shape, input.device),
                TensorType(int64, shape, input.device))

    def rule(grad: Any, input_type: TensorType, indices: Any, dim: int, keepdim: bool) -> Any:
        zeros = zeros_of(grad, input_type._replace(dtype=grad.dtype))
        where_to, what = (restored(x, (dim,), keepdim) for x in (indices, grad))
        return scatter_add_record(zeros, where_to, what, dim=dim)

    return composite(name, ("input",), body, infer=types, node_name=node_name,
                     outputs=("values", "indices"), input=rule)


max_along = _along_dim("max_along", argmax_record, "MaxBackward0")
min_along = _along_dim("min_along", argmin_record, "MinBackward0")


def _with_position(input: Any, dim: int, keepdim: bool, record: Op, name: str) -> tuple[Any, Any]:
    k = normalize_dim(dim, len(input.shape))
    if not input.shape:
        return _with_position(input.reshape(1), 0, False, record, name)
    _nonempty(input, k, name)
    return record(input, dim=k, keepdim=keepdim)


@method()
def max(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Return the largest element; with `dim`, (values, indices); with a tensor, elementwise maxima.

    >>> import tracejit
    >>> tracejit.tensor([[1.0, 5.0], [7.0, 2.0]]).max(0).indices.tolist()
    [1, 0]
    """
    if dim is None and other is None:
        found = _max_direct.direct(input, dim, keepdim)
        if found is not NotImplemented:
            return found
    must_be_tensors("max", ("input",), (input,))
    if other is not None or is_tensor(dim) and not isinstance(dim, int):
        return pointwise.maximum(input, dim if other is None else other)
    _ordered(input, "max_all" if dim is None else "max()")
    if dim is None:
        return max_record(input, dims=_nonempty(input, None, "max"), keepdim=bool(keepdim))
    return MaxResult(*_with_position(input, dim, bool(keepdim), max_along, "max"))


@method()
def min(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Return the smallest element; with a dimension `dim`, (values, indices); with a tensor,
    minima; see `max`.

    >>> import tracejit
    >>> tracejit.min(tracejit.tensor([3, 1, 2]))
    tensor(1)
    """
    must_be_tensors("min", ("input",), (input,))
    if other is not None or is_tensor(dim) and not isinstance(dim, int):
        return pointwise.minimum(input, dim if other is None else other)
    _ordered(input, "min_all" if dim is None else "min()")
    if dim is None:
        return min_record(input, dims=_nonempty(input, None, "min"), keepdim=bool(keepdim))
    return MinResult(*_with_position(input, dim, bool(keepdim), min_along, "min"))


# -- truth ----------------------------------------------------------------------------------------


def _truth(record: Op, input: Any, dim: Any, keepdim: bool) -> Any:
    found = convert(input, bool_)
    if dim is None or not isinstance(dim, (tuple, list)) or dim:
        found = record(found, dims=normalize_dims(dim, len(input.shape)), keepdim=bool(keepdim))
    return convert(found, uint8) if input.dtype is uint8 else found


@method()
def any(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Return True if some element over `dim` is not zero; bool (uint8 for uint8, as PyTorch).

    `dim` None: over all; an empty tuple: over none, each element by itself.

    >>> import tracejit
    >>> tracejit.tensor([0.0, 2.0]).any().item()
    True
    """
    return _truth(any_record, input, dim, keepdim)


@method()
def all(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Return True if every element over dimension `dim` (None: all) is not zero; see `any`.

    >>> import tracejit
    >>> tracejit.all(tracejit.tensor([1, 0]))
    tensor(False)
    """
    return _truth(all_record, input, dim, keepdim)

