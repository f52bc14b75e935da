"""Running sums, products, extremes and logarithms of sums along a dimension.

In: a tensor and a dimension. Out: a tensor of the same shape. Called by users. A library kernel
sums on the CPU; the rest calls the array library.
"""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

import numpy as np

from tracejit.core.ops.accumulation import accumulated
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.composite import must_float
from tracejit.core.ops.creation import eye_of, zeros_of
from tracejit.core.ops.gather_scatter import scatter_add_record
from tracejit.core.ops.logarithms import log_of_sum
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise import convert, where
from tracejit.core.ops.pointwise_record import must_be_real
from tracejit.core.ops.record import Op
from tracejit.core.ops.reduction import sum_record
from tracejit.core.ops.shapes import normalize_dim
from tracejit.core.ops.types import (
    COMPLEX,
    FLOATING,
    TensorType,
    bfloat16,
    bool_,
    complex64,
    dtype,
    float16,
    float32,
    int64,
)  # fmt: skip

# Partial results are kept wider than the elements, so that errors do not pile up along the way.
_WIDER = {float32.numpy: np.float64, float16.numpy: np.float64, bfloat16.numpy: np.float64,
          complex64.numpy: np.complex128}


def _same_type(input: Any, dim: int) -> TensorType:
    return TensorType(input.dtype, tuple(input.shape), input.device)


def _eager(name: str) -> Any:
    def run(xp: Any, x: Any, dim: int) -> Any:
        if not x.ndim:
            return x.copy()
        wide = x.astype(_WIDER.get(x.dtype, x.dtype))
        return getattr(xp, name)(wide, axis=dim).astype(x.dtype)

    return run


def _cumprod_rule(grad: Any, input: Any, dim: int) -> Any:
    """Return, by i, the sum over k >= i of grad[k] times the product of factors up to k without
    i."""
    ndim = len(input.shape)
    if not ndim:
        return grad
    last = input.movedim(dim, -1)
    same = eye_of(input, last.shape[-1], last.shape[-1], bool_)
    without = cumprod_record(where(same, 1, last.unsqueeze(-2)), dim=ndim)
    terms = (grad.movedim(dim, -1).unsqueeze(-2) * without).triu()
    return sum_record(terms, dims=(ndim,), keepdim=False).movedim(-1, dim)


cumsum_record: Op = Op(
    "cumsum", "extern", ("input",), infer=_same_type, eager=_eager("cumsum"),
    library=True,
    rules={"input": lambda grad, dim: cumsum_record(grad.flip(dim), dim=dim).flip(dim)
           if grad.shape else grad},
)  # fmt: skip

cumprod_record: Op = Op(
    "cumprod", "extern", ("input",), infer=_same_type, eager=_eager("cumprod"),
    rules={"input": _cumprod_rule},
)  # fmt: skip


def _summable(input: Any, d: dtype | None) -> Any:
    return convert(input, d or (input.dtype if input.dtype.category >= FLOATING else int64))


@method()
@autocasts(cuda="float32")
def cumsum(input: Any, dim: int, *, dtype: dtype | None = None) -> Any:
    """Sum the elements up to each, along `dim`. Integers sum in int64.

    >>> import tracejit
    >>> tracejit.tensor([1, 2, 3]).cumsum(0).tolist()
    [1, 3, 6]
    """
    return cumsum_record(_summable(input, dtype), dim=normalize_dim(dim, len(input.shape)))


@method()
@autocasts(cuda="float32")
def cumprod(input: Any, dim: int, *, dtype: dtype | None = None) -> Any:
    """Multiply the elements up to each, along dimension `dim`, in the same shape. Integers multiply
    in int64.

    >>> import tracejit
    >>> tracejit.tensor([1, 2, 3]).cumprod(0)
    tensor([1, 2, 6])
    """
    return cumprod_record(_summable(input, dtype), dim=normalize_dim(dim, len(input.shape)))


# -- extremes --------------------------------------------------------------------------------------
CummaxResult = namedtuple("cummax", ["values", "indices"])  # type: ignore[name-match]
CumminResult = namedtuple("cummin", ["values", "indices"])  # type: ignore[name-match]


def _extremes(name: str) -> Any:
    """Make the function of running extremes, and where the last of equal ones was."""
    def run(xp: Any, x: Any, dim: int) -> tuple[Any, Any]:
        if not x.ndim:
            return x.copy(), xp.zeros((), xp.int64)
        wide = x.astype(np.float32) if x.dtype in (float16.numpy, bfloat16.numpy) else x
        values = accumulated(xp, name, wide, dim)
        places = xp.arange(x.shape[dim]).reshape((-1, *(1,) * (x.ndim - dim - 1)))
        here = (wide == values) | (wide != wide)
        indices = accumulated(xp, "maximum", xp.where(here, places, 0), dim)
        return values.astype(x.dtype), indices.astype(xp.int64)

    return run


def _extreme_rule(grad: Any, indices: Any, input_type: TensorType, dim: int) -> Any:
    if not grad.shape:
        return grad
    zeros = zeros_of(grad, input_type._replace(dtype=grad.dtype))
    return scatter_add_record(zeros, indices, grad, dim=dim)


def _extreme_record(name: str, function: str) -> Op:
    return Op(
        name, "extern", ("input",), outputs=("values", "indices"), eager=_extremes(function),
        infer=lambda input, dim: (_same_type(input, dim),
                                  _same_type(input, dim)._replace(dtype=int64)),
        rules={"input": _extreme_rule},
    )  # fmt: skip


cummax_record, cummin_record = (
    _extreme_record("cummax", "maximum"), _extreme_record("cummin", "minimum"),
)  # fmt: skip


@method()
def cummax(input: Any, dim: int) -> Any:
    """Return (values, indices) of the largest element up to each along `dim`.

    The index is that of the last of equal elements.

    >>> import tracejit
    >>> values, indices = tracejit.tensor([1, 3, 2, 3]).cummax(0)
    >>> values.tolist(), indices.tolist()
    ([1, 3, 3, 3], [0, 1, 1, 3])
    """
    must_be_real("\"cummax_cpu\" not implemented for '{}'", (input,))
    return CummaxResult(*cummax_record(input, dim=normalize_dim(dim, len(input.shape))))


@method()
def cummin(input: Any, dim: int) -> Any:
    """Return (values, indices) of the smallest element up to each along dimension `dim`; see
    `cummax`.

    >>> import tracejit
    >>> tracejit.tensor([3, 1, 2]).cummin(0)
    tracejit.return_types.cummin(
    values=tensor([3, 1, 1]),
    indices=tensor([0, 1, 1]))
    """
    must_be_real("\"cummin_cpu\" not implemented for '{}'", (input,))
    return CumminResult(*cummin_record(input, dim=normalize_dim(dim, len(input.shape))))


# -- logarithms of sums ----------------------------------------------------------------------------
def _complex_logarithms(xp: Any, x: Any, dim: int) -> Any:
    """Add element by element: the array library adds no exponentials of complex numbers."""
    found = xp.moveaxis(x.copy(), dim, 0)
    total = xp.full(found.shape[1:], -math.inf, x.dtype)
    for k, element in enumerate(found):
        found[k] = total = log_of_sum(xp, total, element)
    return xp.moveaxis(found, 0, dim)


def _logarithms(xp: Any, x: Any, dim: int) -> Any:
    if not x.ndim:
        return x.copy()
    wide = x.astype(_WIDER.get(x.dtype, x.dtype))
    if x.dtype.kind == "c":
        return _complex_logarithms(xp, wide, dim).astype(x.dtype)
    return accumulated(xp, "logaddexp", wide, dim).astype(x.dtype)


def _weighted(xp: Any, weights: Any, logs: Any, totals: Any, dim: int) -> Any:
    """Return, by i, the sum over k >= i of weights[k] * exp(logs[i] - totals[k]).

    No term overflows on the way: the weights are added as logarithms, real ones by sign.
    """
    if not weights.ndim:
        return weights * xp.exp(logs - totals)

    def part(of: Any) -> Any:
        with np.errstate(divide="ignore"):
            terms = xp.log(of) - totals
        return xp.exp(xp.flip(_logarithms(xp, xp.flip(terms, dim), dim), dim) + logs)

    if weights.dtype.kind != "c":
        return part(xp.maximum(weights, 0)) - part(xp.maximum(-weights, 0))
    return part(weights)


def _weighted_back(grad: Any, logs: Any, totals: Any, dim: int) -> Any:
    """Return, by k, the sum over i <= k of grad[i] * exp(logs[i] - totals[k])."""
    if not grad.shape:
        return weighted_record(grad, logs, totals, dim=dim)
    return weighted_record(grad.flip(dim), -totals.flip(dim), -logs.flip(dim), dim=dim).flip(dim)


# A record of its own, linear in the gradient: the logarithm of a gradient of 0 has no derivative.
weighted_record: Op = Op(
    "logcumsumexp_backward", "extern", ("weights", "logs", "totals"),
    infer=lambda weights, logs, totals, dim: _same_type(weights, dim), eager=_weighted,
    rules={
        "weights": _weighted_back,
        "logs": lambda grad, out: grad * out,
        "totals": lambda grad, weights, logs, totals, dim:
            -weights * _weighted_back(grad, logs, totals, dim),
    },
)  # fmt: skip


logcumsumexp_record: Op = Op(
    "logcumsumexp", "extern", ("input",), infer=_same_type, eager=_logarithms,
    rules={"input": lambda grad, input, out, dim: weighted_record(grad, input, out, dim=dim)},
)  # fmt: skip


@method()
def logcumsumexp(input: Any, dim: int) -> Any:
    """Return the log of the sums of exp of the elements up to each, along dimension `dim`; none
    overflows.

    >>> import tracejit
    >>> tracejit.tensor([1000.0, 1000.0]).logcumsumexp(0)
    tensor([1000.0000, 1000.6932])
    """
    k = normalize_dim(dim, len(input.shape))
    if input.dtype.category != COMPLEX:
        must_float("logcumsumexp_out_cpu", input.dtype)
    return logcumsumexp_record(input, dim=k)
