"""Reductions: many elements to one, along dimensions.

In: a tensor, `dim` (None, an int or several), `keepdim`, `dtype`. Out: tensors with those
dimensions gone or of size 1. Called by users, by gradient rules (un-broadcasting is a sum), by
`nn`.

The records take `dims` (sorted, >= 0) and `keepdim`; the functions normalise PyTorch's
arguments to that. A mean is a sum divided by a number of elements that may be a symbolic size:
a size is an operand of `div` as any Python number is, and no size is frozen. float16 and
bfloat16 accumulate in float32.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from tracejit.ops import pointwise
from tracejit.ops.gather_scatter import gather_record
from tracejit.ops.movement import squeeze_record
from tracejit.ops.operators import method
from tracejit.ops.pointwise import convert, is_tensor, where
from tracejit.ops.record import Op
from tracejit.ops.reduction_record import (
    all_record,
    amax_record,
    amin_record,
    any_record,
    argmax_record,
    argmin_record,
    prod_record,
    sum_record,
)  # fmt: skip
from tracejit.ops.reduction_record import reduced_shape as reduced_shape
from tracejit.ops.reduction_record import restored as restored
from tracejit.ops.shapes import normalize_dim, normalize_dims, numel
from tracejit.ops.types import (
    COMPLEX,
    FLOATING,
    bfloat16,
    bool_,
    dtype,
    float16,
    float32,
    int64,
    uint8,
)  # fmt: skip

_SCALAR_NAMES = {"int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char",
                 "uint8": "Byte", "bool": "Bool"}  # fmt: skip


# -- arguments ------------------------------------------------------------------------------------


def reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method of that name, which also takes NumPy's `axis` and `keepdims`."""
    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if keywords:
            for theirs, ours in (("axis", "dim"), ("keepdims", "keepdim")):
                if theirs in keywords:
                    keywords[ours] = keywords.pop(theirs)
        return function(*args, **keywords)

    return method()(call)


def _summable(input: Any, d: dtype | None) -> Any:
    """`input` in the dtype it is summed in: int64 for integers, unless told."""
    return convert(input, d or (input.dtype if input.dtype.category >= FLOATING else int64))


def _floating(input: Any, name: str) -> None:
    if input.dtype.category < FLOATING:
        raise RuntimeError(f"{name}(): could not infer output dtype. Input dtype must be either a "
                           "floating point or complex dtype. Got: "
                           f"{_SCALAR_NAMES[input.dtype.name]}")


def _ordered(input: Any, name: str) -> Any:
    if input.dtype.category == COMPLEX:
        raise NotImplementedError(f'"{name}" not implemented for complex dtypes')
    return input


def _nonempty(input: Any, dim: Any, name: str) -> tuple[int, ...]:
    """The dimensions to reduce, none of which may be empty."""
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


def _in_float32(function: Callable[[Any], Any], input: Any) -> Any:
    """A composite of sums: halves go through it in float32 and are rounded once."""
    if input.dtype is float16 or input.dtype is bfloat16:
        return convert(function(convert(input, float32)), input.dtype)
    return function(input)


def _count(input: Any, dims: tuple[int, ...]) -> Any:
    return numel(input.shape[d] for d in dims)


# -- sums -----------------------------------------------------------------------------------------


@reduction
def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Any:
    """The sum over `dim` (None: all). Integers and bools sum in int64.

    >>> import tracejit
    >>> tracejit.tensor([[1, 2], [3, 4]]).sum(0).tolist()
    [4, 6]
    """
    dims = normalize_dims(dim, len(input.shape))
    return sum_record(_summable(input, dtype), dims=dims, keepdim=bool(keepdim))


@reduction
def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Any:
    """The mean over `dim` (None: all); nan of nothing. RuntimeError for integers without `dtype`.

    >>> import tracejit
    >>> tracejit.tensor([[1.0, 2.0], [3.0, 4.0]]).mean(1).tolist()
    [1.5, 3.5]
    """
    if dtype is None:
        _floating(input, "mean")
    dims = normalize_dims(dim, len(input.shape))

    def run(x: Any) -> Any:
        return sum_record(x, dims=dims, keepdim=bool(keepdim)) / _count(x, dims)

    return _in_float32(run, input if dtype is None else convert(input, dtype))


@reduction
def prod(input: Any, dim: int | None = None, keepdim: bool = False, *,
         dtype: dtype | None = None) -> Any:
    """The product over `dim` (None: all); 1 of nothing.

    >>> import tracejit
    >>> tracejit.tensor([2.0, 3.0, 4.0]).prod().item()
    24.0
    """
    dims = normalize_dims(dim, len(input.shape))
    return prod_record(_summable(input, dtype), dims=dims, keepdim=bool(keepdim))


@reduction
def count_nonzero(input: Any, dim: Any = None) -> Any:
    """How many elements are not zero."""
    return sum(input != 0, dim)


# -- variance -------------------------------------------------------------------------------------


_root = pointwise.pointwise(
    "root", "sqrt", "sqrt({input})", methods=(), node_name="SqrtBackward0",
    # The slope at 0 is taken as 0, so that std and norm have a gradient where they vanish.
    input=lambda grad, out: where(out == 0, 0, grad) / where(out == 0, 1, out * 2))


def _moments(input: Any, dims: tuple[int, ...], correction: Any, keepdim: bool) -> tuple[Any, Any]:
    count = _count(input, dims)
    center = sum_record(input, dims=dims, keepdim=True) / count
    squares = pointwise.square(input - center)
    by = int(correction) if float(correction).is_integer() else correction
    freedom = count - by if by <= 0 or count > by else 0
    variance = sum_record(squares, dims=dims, keepdim=keepdim) / freedom
    return variance, center if keepdim else squeeze_record(center, dims=dims)


def _spread(input: Any, dim: Any, unbiased: bool | None, correction: Any,
            name: str) -> tuple[tuple[int, ...], Any]:
    """The dimensions and the correction of a var- or std-like call."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if input.dtype.category != FLOATING:
        raise RuntimeError(f"{name} only support floating point and complex dtypes")
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    return normalize_dims(dim, len(input.shape)), correction


@reduction
def var(input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: Any = None) -> Any:
    """The variance over `dim`: squared deviations summed, divided by count - correction (1).

    >>> import tracejit
    >>> tracejit.tensor([1.0, 2.0, 3.0]).var().item()
    1.0
    """
    dims, by = _spread(input, dim, unbiased, correction, "std and var")
    return _in_float32(lambda x: _moments(x, dims, by, bool(keepdim))[0], input)


@reduction
def std(input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: Any = None) -> Any:
    """The square root of `var`; its gradient where it is 0 is 0."""
    dims, by = _spread(input, dim, unbiased, correction, "std and var")
    return _in_float32(lambda x: _root(_moments(x, dims, by, bool(keepdim))[0]), input)


def var_mean(input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: Any = None) -> tuple[Any, Any]:
    """`var` and `mean` of the same elements."""
    dims, by = _spread(input, dim, unbiased, correction, "var_mean")
    wide = convert(input, float32) if input.dtype in (float16, bfloat16) else input
    variance, center = _moments(wide, dims, by, bool(keepdim))
    return convert(variance, input.dtype), convert(center, input.dtype)


def std_mean(input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: Any = None) -> tuple[Any, Any]:
    """`std` and `mean` of the same elements."""
    dims, by = _spread(input, dim, unbiased, correction, "std_mean")
    wide = convert(input, float32) if input.dtype in (float16, bfloat16) else input
    variance, center = _moments(wide, dims, by, bool(keepdim))
    return convert(_root(variance), input.dtype), convert(center, input.dtype)


# -- norms ----------------------------------------------------------------------------------------


@reduction
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, *,
         dtype: dtype | None = None) -> Any:
    """The p-norm of the elements over `dim` (None: all); the gradient of the 2-norm at 0 is 0.

    p: a number, inf, -inf, 0 (how many are not zero) or "fro" (2).

    >>> import tracejit
    >>> tracejit.tensor([3.0, -4.0]).norm().item()
    5.0
    """
    if p not in (None, "fro") and not isinstance(p, (int, float)):
        raise NotImplementedError(f"norm: p={p!r}; expected a number, inf or 'fro'")
    power = 2.0 if p is None or p == "fro" else float(p)
    if dtype is not None:
        input = convert(input, dtype)
    if input.dtype.category != FLOATING:
        raise RuntimeError("linalg.vector_norm: Expected a floating point or complex tensor as "
                           f"input. Got {_SCALAR_NAMES.get(input.dtype.name, input.dtype.name)}")
    dims = normalize_dims(dim, len(input.shape))
    return _in_float32(lambda x: _norm(x, power, dims, bool(keepdim)), input)


def _norm(x: Any, p: float, dims: tuple[int, ...], keepdim: bool) -> Any:
    if p == 2:
        return _root(sum_record(pointwise.square(x), dims=dims, keepdim=keepdim))
    if p == 1:
        return sum_record(pointwise.abs(x), dims=dims, keepdim=keepdim)
    if p == 0:
        return sum_record(convert(x != 0, x.dtype), dims=dims, keepdim=keepdim)
    if p == float("inf"):
        return amax_record(pointwise.abs(x), dims=dims, keepdim=keepdim)
    if p == -float("inf"):
        return amin_record(pointwise.abs(x), dims=dims, keepdim=keepdim)
    total = sum_record(pointwise.abs(x) ** p, dims=dims, keepdim=keepdim)
    return where(total == 0, 0, where(total == 0, 1, total) ** (1 / p))


# -- extremes -------------------------------------------------------------------------------------


@reduction
def amax(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """The largest element over `dim` (none: all), nan if there is one; ties share the gradient.

    >>> import tracejit
    >>> tracejit.tensor([[1.0, 2.0], [3.0, 0.0]]).amax(1).tolist()
    [2.0, 3.0]
    """
    dims = _nonempty(_ordered(input, "amax"), dim, "amax")
    return amax_record(input, dims=dims, keepdim=bool(keepdim))


@reduction
def amin(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """The smallest element over `dim` (none: all), nan if there is one; ties share the gradient."""
    dims = _nonempty(_ordered(input, "amin"), dim, "amin")
    return amin_record(input, dims=dims, keepdim=bool(keepdim))


@reduction
def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Position of the first largest element (of the first nan) along `dim`, or in the flat tensor.

    >>> import tracejit
    >>> tracejit.tensor([[1.0, 5.0], [7.0, 7.0]]).argmax(1).tolist()
    [1, 0]
    """
    dims = _nonempty(_ordered(input, "argmax"), dim, "argmax")
    return argmax_record(input, dims=dims, keepdim=bool(keepdim))


@reduction
def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Position of the first smallest element (or first nan) along `dim`, or in the flat tensor."""
    dims = _nonempty(_ordered(input, "argmin"), dim, "argmin")
    return argmin_record(input, dims=dims, keepdim=bool(keepdim))


MaxResult = namedtuple("max", ["values", "indices"])  # type: ignore[name-match]
MinResult = namedtuple("min", ["values", "indices"])  # type: ignore[name-match]


def _with_position(input: Any, dim: int, keepdim: bool, position: Op, name: str) -> tuple[Any, Any]:
    """The extreme elements along one dimension, and where they are; gradients go to just those."""
    k = normalize_dim(dim, len(input.shape))
    if not input.shape:
        values, indices = _with_position(input.reshape(1), 0, False, position, name)
        return values, indices
    _nonempty(input, k, name)
    indices = position(input, dims=(k,), keepdim=True)
    values = gather_record(input, indices, dim=k)
    if keepdim:
        return values, indices
    return squeeze_record(values, dims=(k,)), squeeze_record(indices, dims=(k,))


@reduction
def max(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """max(x): the largest element. max(x, dim): (values, indices) along it. max(x, y): elementwise.

    >>> import tracejit
    >>> tracejit.tensor([[1.0, 5.0], [7.0, 2.0]]).max(0).indices.tolist()
    [1, 0]
    """
    if other is not None or is_tensor(dim):
        return pointwise.maximum(input, dim if other is None else other)
    _ordered(input, "max")
    if dim is None:
        return amax_record(input, dims=_nonempty(input, None, "max"), keepdim=bool(keepdim))
    return MaxResult(*_with_position(input, dim, bool(keepdim), argmax_record, "max"))


@reduction
def min(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """min(x): the smallest element. min(x, dim): (values, indices). min(x, y): elementwise."""
    if other is not None or is_tensor(dim):
        return pointwise.minimum(input, dim if other is None else other)
    _ordered(input, "min")
    if dim is None:
        return amin_record(input, dims=_nonempty(input, None, "min"), keepdim=bool(keepdim))
    return MinResult(*_with_position(input, dim, bool(keepdim), argmin_record, "min"))


# -- truth ----------------------------------------------------------------------------------------


def _truth(record: Op, input: Any, dim: Any, keepdim: bool) -> Any:
    dims = normalize_dims(dim, len(input.shape))
    found = record(convert(input, bool_), dims=dims, keepdim=bool(keepdim))
    return convert(found, uint8) if input.dtype is uint8 else found


@reduction
def any(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether some element over `dim` is not zero; bool (uint8 for uint8, as PyTorch).

    >>> import tracejit
    >>> tracejit.tensor([0.0, 2.0]).any().item()
    True
    """
    return _truth(any_record, input, dim, keepdim)


@reduction
def all(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether every element over `dim` is not zero; bool (uint8 for uint8, as PyTorch)."""
    return _truth(all_record, input, dim, keepdim)

