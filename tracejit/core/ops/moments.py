"""Means, variances and norms: one node for users and the tape, sums in kernels.

In: a floating tensor, `dim` (None, an int or several), `keepdim`. Out: tensors with those
dimensions gone or of size 1. A mean divides a sum by the number of elements, which may be a
symbolic size. A size is an operand of `div` as any Python number is, and no size is frozen. float16
and bfloat16 compute in float32 and are rounded once.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from tracejit.core.ops import pointwise
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.composite import composite, widened
from tracejit.core.ops.direct_calls import Direct
from tracejit.core.ops.movement import squeeze_record
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise import convert, where
from tracejit.core.ops.reduction import nansum, sum
from tracejit.core.ops.reduction_record import (
    amax_record,
    amin_record,
    extreme_or_nan_rule,
    reduced_shape,
    restored,
    sum_record,
)
from tracejit.core.ops.shapes import equal, hint, normalize_dim, normalize_dims, numel
from tracejit.core.ops.types import COMPLEX, FLOATING, SCALAR_NAMES, TensorType, dtype


def _type(input: Any, *numbers: Any, dims: tuple[int, ...], keepdim: bool,
          **attributes: Any) -> TensorType:
    return TensorType(input.dtype, reduced_shape(input.shape, dims, keepdim), input.device)


def _count(input: Any, dims: tuple[int, ...]) -> Any:
    return numel(input.shape[d] for d in dims)


# -- mean ------------------------------------------------------------------------------------------
def _mean_body(input: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    x = widened(input)
    return convert(sum_record(x, dims=dims, keepdim=keepdim) / _count(x, dims), input.dtype)


def _mean_rule(grad: Any, input_type: TensorType, dims: tuple[int, ...], keepdim: bool) -> Any:
    each = convert(widened(grad) / _count(input_type, dims), grad.dtype)
    return restored(each, dims, keepdim).expand(input_type.shape)


_mean_direct = Direct("reduction", "mean")
mean_record = composite("mean", ("input",), _mean_body, infer=_type, input=_mean_rule)


@method()
def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Any:
    """Average over `dim` (None: all); nan of nothing. RuntimeError for integers without `dtype`.

    >>> import tracejit
    >>> tracejit.tensor([[1.0, 2.0], [3.0, 4.0]]).mean(1).tolist()
    [1.5, 3.5]
    """
    if dtype is None:
        found = _mean_direct.direct(input, dim, keepdim)
        if found is not NotImplemented:
            return found
    x = input if dtype is None else convert(input, dtype)
    if x.dtype.category < FLOATING:
        raise RuntimeError("mean(): could not infer output dtype. Input dtype must be either a "
                           "floating point or complex dtype. Got: "
                           f"{SCALAR_NAMES[x.dtype.name]}")
    dims = normalize_dims(dim, len(input.shape))
    return mean_record(x, dims=dims, keepdim=bool(keepdim))


# -- variance --------------------------------------------------------------------------------------
def _freedom(input: Any, dims: tuple[int, ...], correction: Any) -> Any:
    """Return the divisor of summed squared deviations: count - correction, at least 0."""
    count = _count(input, dims)
    by = int(correction) if float(correction).is_integer() else correction
    return count - by if by <= 0 or count > by else 0


def _moments(input: Any, freedom: Any, dims: tuple[int, ...], keepdim: bool) -> tuple[Any, Any]:
    center = sum_record(input, dims=dims, keepdim=True) / _count(input, dims)
    squares = pointwise.square(input - center)
    variance = sum_record(squares, dims=dims, keepdim=keepdim) / freedom
    return variance, center if keepdim else squeeze_record(center, dims=dims)


_root = pointwise.pointwise(
    "root", "sqrt", "sqrt({input})", methods=(), node_name="SqrtBackward0",
    # The slope at 0 is taken as 0, so that std and norm have a gradient where they vanish.
    input=lambda grad, out: _over(grad, out * 2, out == 0))


def _over(grad: Any, divisor: Any, zero: Any) -> Any:
    """Return grad / divisor, and 0 where `zero`."""
    return where(zero, 0, grad) / where(zero, 1, divisor)


def _var_body(input: Any, freedom: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    return convert(_moments(widened(input), freedom, dims, keepdim)[0], input.dtype)


def _var_rule(grad: Any, input: Any, freedom: Any,
              dims: tuple[int, ...], keepdim: bool) -> Any:
    x = widened(input)
    deviation = x - sum_record(x, dims=dims, keepdim=True) / _count(x, dims)
    slope = restored(widened(grad), dims, keepdim) * 2 / freedom
    return convert(slope * deviation, grad.dtype)


def _std_body(input: Any, freedom: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    return convert(_root(_moments(widened(input), freedom, dims, keepdim)[0]), input.dtype)


def _std_rule(grad: Any, input: Any, out: Any, freedom: Any,
              dims: tuple[int, ...], keepdim: bool) -> Any:
    wide = widened(out)
    slope = convert(_over(widened(grad), wide * 2, wide == 0), grad.dtype)
    return _var_rule(slope, input, freedom, dims, keepdim)


var_record = composite("var", ("input", "freedom"), _var_body, infer=_type, input=_var_rule)
std_record = composite("std", ("input", "freedom"), _std_body, infer=_type, input=_std_rule)


def _with_mean(name: str, record: Any, node_name: str) -> Any:
    """Make the record of (var or std, mean)."""
    def both(input: Any, freedom: Any, dims: tuple[int, ...], keepdim: bool) -> tuple:
        x = widened(input)
        variance, center = _moments(x, freedom, dims, keepdim)
        spread = _root(variance) if record is std_record else variance
        return convert(spread, input.dtype), convert(center, input.dtype)

    def types(input: Any, freedom: Any, dims: tuple[int, ...], keepdim: bool) -> tuple:
        return (_type(input, dims=dims, keepdim=keepdim),) * 2

    def of_variance(grad: Any, grad_center: Any, input: Any, input_type: TensorType,
                    freedom: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
        return (_var_rule(grad, input, freedom, dims, keepdim)
                + _mean_rule(grad_center, input_type, dims, keepdim))

    def of_deviation(grad: Any, grad_center: Any, input: Any, out: Any, input_type: TensorType,
                     freedom: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
        return (_std_rule(grad, input, out, freedom, dims, keepdim)
                + _mean_rule(grad_center, input_type, dims, keepdim))

    return composite(name, ("input", "freedom"), both, infer=types, node_name=node_name,
                     outputs=("out", "center"),
                     input=of_deviation if record is std_record else of_variance)


var_mean_record = _with_mean("var_mean", var_record, "VarMeanBackward0")
std_mean_record = _with_mean("std_mean", std_record, "StdMeanBackward0")


def _complex_spread(record: Any, input: Any, freedom: Any, dims: tuple[int, ...],
                    keepdim: bool) -> Any:
    """Add the variances of both parts: their sum is the variance of complex numbers."""
    of_real, of_imag = (var_record(part, freedom, dims=dims, keepdim=keepdim)
                        for part in (input.real, input.imag))
    spread = of_real + of_imag
    if record in (std_record, std_mean_record):
        spread = _root(spread)
    if record in (var_record, std_record):
        return spread
    return spread, mean_record(input, dims=dims, keepdim=keepdim)


def _spread(record: Any, input: Any, dim: Any, unbiased: bool | None, keepdim: bool,
            correction: Any, name: str) -> Any:
    """Turn a var- or std-like call of PyTorch into a call of the record."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if input.dtype.category < FLOATING:
        raise RuntimeError(f"{name} only support floating point and complex dtypes")
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    dims = normalize_dims(dim, len(input.shape))
    freedom = _freedom(input, dims, correction)
    if hint(freedom) <= 0:
        warnings.warn(
            f"{record.name}(): degrees of freedom is <= 0. Correction should be strictly less than "
            "the reduction factor (input numel divided by output numel).", stacklevel=3)
    if input.dtype.category == COMPLEX:
        return _complex_spread(record, input, freedom, dims, bool(keepdim))
    return record(input, freedom, dims=dims, keepdim=bool(keepdim))


@method()
def var(input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: Any = None) -> Any:
    """Sum squared deviations over `dim`, divided by count - correction (default 1).

    >>> import tracejit
    >>> tracejit.tensor([1.0, 2.0, 3.0]).var().item()
    1.0
    """
    return _spread(var_record, input, dim, unbiased, keepdim, correction, "std and var")


@method()
def std(input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: Any = None) -> Any:
    """Return the square root of `var`, in its shape and dtype; its gradient where it is 0 is 0.

    >>> import tracejit
    >>> tracejit.std(tracejit.tensor([1.0, 3.0]), correction=0)
    tensor(1.)
    """
    return _spread(std_record, input, dim, unbiased, keepdim, correction, "std and var")


def var_mean(input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: Any = None) -> tuple[Any, Any]:
    """Return `var` and `mean` of the same elements, both in the shape of `var`.

    >>> import tracejit
    >>> tracejit.var_mean(tracejit.tensor([1.0, 3.0]))
    (tensor(2.), tensor(2.))
    """
    return _spread(var_mean_record, input, dim, unbiased, keepdim, correction, "var_mean")


def std_mean(input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: Any = None) -> tuple[Any, Any]:
    """Return `std` and `mean` of the same elements, both in the shape of `std`.

    >>> import tracejit
    >>> tracejit.std_mean(tracejit.tensor([1.0, 3.0]), correction=0)
    (tensor(1.), tensor(2.))
    """
    return _spread(std_mean_record, input, dim, unbiased, keepdim, correction, "std_mean")


# -- norms -----------------------------------------------------------------------------------------
def _norm_body(input: Any, p: float, dims: tuple[int, ...], keepdim: bool) -> Any:
    return convert(_norm(widened(input), p, dims, keepdim), input.dtype)


def _norm(x: Any, p: float, dims: tuple[int, ...], keepdim: bool) -> Any:
    if p == 2:
        return _root(sum_record(pointwise.square(x), dims=dims, keepdim=keepdim))
    if p == 1:
        return sum_record(pointwise.abs(x), dims=dims, keepdim=keepdim)
    if p == 0:
        return sum_record(convert(x != 0, x.dtype), dims=dims, keepdim=keepdim)
    if math.isinf(p):
        extreme = amax_record if p > 0 else amin_record
        return extreme(pointwise.abs(x), dims=dims, keepdim=keepdim)
    total = sum_record(pointwise.abs(x) ** p, dims=dims, keepdim=keepdim)
    nothing = 0 if p > 0 else math.inf  # negative powers add up to 0 for infinite elements only
    return where(total == 0, nothing, where(total == 0, 1, total) ** (1 / p))


def _norm_rule(grad: Any, input: Any, out: Any, p: float, dims: tuple[int, ...],
               keepdim: bool) -> Any:
    """Give 0 where the norm is 0; a count of elements has no gradient."""
    if p == 0:
        return None
    x, norm = widened(input), restored(widened(out), dims, keepdim)
    g = restored(widened(grad), dims, keepdim)
    if p == 2:
        slope = _over(g, norm, norm == 0) * x
    elif p == 1:
        slope = g * pointwise.sign(x)
    elif math.isinf(p):
        slope = extreme_or_nan_rule(g, pointwise.abs(x), norm, dims, True) * pointwise.sign(x)
    else:
        size = pointwise.abs(x)
        shares = where(x == 0, 0, where(x == 0, 1, size) ** (p - 1)) * pointwise.sign(x)
        slope = _over(g, where(norm == 0, 1, norm) ** (p - 1), norm == 0) * shares
    return convert(slope, grad.dtype)


norm_record = composite("norm", ("input",), _norm_body, infer=_type, input=_norm_rule,
                        node_name="LinalgVectorNormBackward0")


@method()
@autocasts(cuda="float32")
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, *,
         dtype: dtype | None = None) -> Any:
    """Return the p-norm of the elements over `dim` (None: all); the gradient of the 2-norm at 0 is
    0.

    p: a number, inf, -inf, 0 (counts elements that are not zero), "fro" (2) or "nuc" (of matrices:
    the sum of singular values).

    >>> import tracejit
    >>> tracejit.tensor([3.0, -4.0]).norm().item()
    5.0
    """
    if isinstance(p, str) and p != "fro":
        from tracejit.core.ops.linalg_norms import matrix_norm

        dims = tuple(range(len(input.shape))) if dim is None else dim
        return matrix_norm(input, p, dims if len(input.shape) > 1 else (-2, -1), keepdim,
                           dtype=dtype)
    power = 2.0 if p is None or p == "fro" else float(p)
    if dtype is not None:
        input = convert(input, dtype)
    if input.dtype.category == COMPLEX:
        input = pointwise.abs(input)
    if input.dtype.category != FLOATING:
        raise RuntimeError("linalg.vector_norm: Expected a floating point or complex tensor as "
                           f"input. Got {SCALAR_NAMES[input.dtype.name]}")
    dims = normalize_dims(dim, len(input.shape))
    must_have_identity(input, power, dims, dim is None or dim == ())
    return norm_record(input, p=power, dims=dims, keepdim=bool(keepdim))


def must_have_identity(x: Any, ord: float, dims: tuple[int, ...], whole: bool) -> None:
    """Raise RuntimeError for extremes of nothing, which are not defined."""
    if ord >= 0 and not math.isinf(ord):
        return
    text = f"linalg.vector_norm cannot compute the {ord:g} norm on "
    if whole:
        if equal(numel(x.shape), 0):
            raise RuntimeError(
                f"{text}an empty tensor because the operation does not have an identity"
            )
        return
    for d in dims:
        if x.shape and equal(x.shape[d], 0):
            raise RuntimeError(
                f"{text}the dimension {d}because this dimension is empty and the operation does "
                "not have an identity"
            )


@method()
def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *,
            dtype: dtype | None = None) -> Any:
    """Return the `mean` of the elements that are not nan.

    >>> import tracejit
    >>> tracejit.tensor([1.0, tracejit.nan, 3.0]).nanmean().item()
    2.0

    RuntimeError for integers and complex numbers.
    """
    if input.dtype.category == COMPLEX:
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if input.dtype.category < FLOATING:
        raise RuntimeError("nanmean(): expected input to have floating point or complex dtype but "
                           f"got {SCALAR_NAMES[input.dtype.name]}")
    if dtype is not None and dtype.category < FLOATING:
        raise RuntimeError("nanmean(): could not infer output dtype. Optional dtype must be either "
                           "a floating point or complex dtype. Got: " + SCALAR_NAMES[dtype.name])
    count = sum(input == input, dim, keepdim)
    return nansum(input, dim, keepdim, dtype=dtype) / count


@method()
@autocasts(cuda="float32")
def renorm(input: Any, p: Any, dim: int, maxnorm: float) -> Any:
    """Scale slices of dimension `dim` down to the p-norm `maxnorm` where theirs is larger.

    >>> import tracejit
    >>> tracejit.tensor([[3.0, 4.0], [0.3, 0.4]]).renorm(2, 0, 1)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])

    RuntimeError for tensors of fewer than two dimensions, a `p` of 0 or less, and a negative
    `maxnorm`.
    """
    rank = len(input.shape)
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if rank < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {rank} dimensions")
    k = normalize_dim(dim, rank)
    wide = widened(input)
    size = norm(wide, p, tuple(d for d in range(rank) if d != k), True)
    factor = pointwise.where(size > maxnorm, maxnorm / (size + 1e-7), 1)
    return convert(wide * factor, input.dtype)
