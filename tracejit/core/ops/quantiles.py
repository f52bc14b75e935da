"""Quantiles: elements between which a fraction of a dimension lies.

In: a floating tensor, fractions, a dimension. Out: elements, or values between two of them. Sort
and gather compute them, so that gradients go through. Called by users.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.creation import full_of
from tracejit.core.ops.gather_scatter import gather_record
from tracejit.core.ops.movement import expand, movedim
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_arithmetic import lerp
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.pointwise_math import ceil, floor, round
from tracejit.core.ops.pointwise_record import convert, elementwise_type, is_tensor
from tracejit.core.ops.record import Op
from tracejit.core.ops.reduction_record import sum_record
from tracejit.core.ops.shapes import normalize_dim
from tracejit.core.ops.sorting import sort_record
from tracejit.core.ops.types import float32, float64, int64

_BETWEEN = ("linear", "lower", "higher", "midpoint", "nearest")


def _fractions(xp: Any, q: Any) -> Any:
    if not ((q >= 0) & (q <= 1)).all():
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    return q.copy()


fractions_record = Op(
    "fractions", "extern", ("q",), infer=elementwise_type(None), eager=_fractions, may_fail=True,
    rules={"q": lambda grad: grad},
)  # fmt: skip


def _checked(name: str, input: Any, q: Any, interpolation: str) -> Any:
    """Return the fractions as a tensor of the input's dtype."""
    if input.dtype not in (float32, float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if interpolation not in _BETWEEN:
        raise RuntimeError(f"{name}() interpolation must be one of linear, lower, higher, midpoint "
                           f"or nearest, but got {interpolation}")
    weak = getattr(q, "is_weak", False)  # a runtime number
    if weak or not is_tensor(q):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        if weak:
            return full_of(input, (), 1, input.dtype, input.device) * q
        return full_of(input, (), float(q), input.dtype, input.device)
    if len(q.shape) > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q.dtype is not input.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    return fractions_record(q)


def _at(values: Any, places: Any) -> Any:
    return gather_record(values, convert(places, int64), dim=len(values.shape) - 1)


def _quantile(name: str, input: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str,
              skip_nan: bool) -> Any:
    fractions = _checked(name, input, q, interpolation)
    rank = len(input.shape)
    axis = 0 if dim is None else normalize_dim(dim, rank)
    flat = dim is None or not rank
    rows = input.reshape((-1,)) if flat else movedim(input, axis, -1)
    if rows.shape[-1] == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty" if flat else
                           f"{name}() Expected reduction dim {axis} to have non-zero size.")
    values = sort_record(rows, dim=len(rows.shape) - 1, descending=False)[0]
    places = _ranks(values, fractions.reshape((-1,)), skip_nan)
    found = _between(values, places, interpolation)
    if keepdim:
        kept = (1,) * rank if flat else (*input.shape[:axis], 1, *input.shape[axis + 1:])
        found = movedim(found, -1, 0).reshape((found.shape[-1], *kept))
    else:
        found = movedim(found, -1, 0)
    return found if fractions.shape else found[0]


def _ranks(values: Any, fractions: Any, skip_nan: bool) -> Any:
    """Return the places of the fractions in each ordered row: (..., fractions)."""
    size, last = values.shape[-1], len(values.shape) - 1
    shape = (*values.shape[:-1], fractions.shape[0])
    if skip_nan:
        numbers = convert(values == values, values.dtype)
        count = sum_record(numbers, dims=(last,), keepdim=True)
        return expand(fractions * (count - 1).clamp_min(0), *shape)
    final = values.narrow(last, size - 1, 1)  # nan comes last, and makes the row nan
    return where(expand(final != final, *shape), size - 1, expand(fractions * (size - 1), *shape))


def _between(values: Any, places: Any, interpolation: str) -> Any:
    if interpolation in ("lower", "higher", "nearest"):
        near = {"lower": floor, "higher": ceil, "nearest": round}[interpolation]
        return _at(values, near(places))
    below = floor(places)
    weight = places - below if interpolation == "linear" else full_of(
        values, (), 0.5, values.dtype, values.device)
    return lerp(_at(values, below), _at(values, ceil(places)), weight)


@method()
@autocasts(cpu="float32")
def quantile(input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *,
             interpolation: str = "linear") -> Any:
    """Return the values below which the fraction `q` of the elements along `dim` lies.

    q              a number, or a vector: that makes a new first dimension
    dim            None: all elements
    interpolation  between two elements: "linear", "lower", "higher", "midpoint" or "nearest"

    A row with a nan gives nan.

    >>> import tracejit
    >>> tracejit.quantile(tracejit.tensor([0.0, 1.0, 2.0, 3.0]), tracejit.tensor([0.5, 0.9]))
    tensor([1.5000, 2.7000])

    RuntimeError for q outside of 0 .. 1, and for dtypes other than float32 and float64.
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


@method()
@autocasts(cpu="float32")
def nanquantile(input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *,
                interpolation: str = "linear") -> Any:
    """Return the `quantile` of the elements that are not nan, in its shape; nan where all are.

    >>> import tracejit
    >>> tracejit.nanquantile(tracejit.tensor([1.0, tracejit.nan, 3.0]), 0.5)
    tensor(2.)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)
