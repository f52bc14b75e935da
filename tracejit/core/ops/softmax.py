"""softmax, log_softmax and logsumexp, stable for large inputs.

In: a floating tensor and a dimension. Out: probabilities along it, their logarithms, or the
logarithm of the sum of exponentials. Their gradient rules read the result alone, not the
intermediate exponentials.
"""

from __future__ import annotations

import warnings
from typing import Any

from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.composite import composite, must_float, widened
from tracejit.core.ops.direct_calls import Direct
from tracejit.core.ops.fused_gradients import log_softmax_backward, softmax_backward
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_logic import isfinite, where
from tracejit.core.ops.pointwise_math import exp, log
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.record import apply
from tracejit.core.ops.reduction_record import amax_record, reduced_shape, restored
from tracejit.core.ops.shapes import normalize_dim, normalize_dims
from tracejit.core.ops.types import COMPLEX, FLOATING, TensorType, dtype, get_default_dtype


def _softmax_body(input: Any, dim: int) -> Any:
    x = widened(input)
    powers = exp(x - amax_record(x, dims=(dim,), keepdim=True))
    return convert(powers / powers.sum(dim, True), input.dtype)


def _log_softmax_body(input: Any, dim: int) -> Any:
    x = widened(input)
    shifted = x - amax_record(x, dims=(dim,), keepdim=True)
    return convert(shifted - log(exp(shifted).sum(dim, True)), input.dtype)


softmax_record = composite(
    "softmax", ("input",), _softmax_body,
    fused="rows", input=lambda grad, out, dim: softmax_backward(grad, out, dim=dim))

log_softmax_record = composite(
    "log_softmax", ("input",), _log_softmax_body,
    fused="rows", input=lambda grad, out, dim: log_softmax_backward(grad, out, dim=dim))


_softmax_direct, _log_softmax_direct = (
    Direct("fused", name) for name in ("softmax", "log_softmax"))


def _implied(name: str, ndim: int) -> int:
    """Return the dimension of a call that gives none."""
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to "
                  "include dim=X as an argument.", stacklevel=6)
    return 0 if ndim in (0, 1, 3) else 1


def _along(record: Any, input: Any, dim: int | None, d: dtype | None) -> Any:
    if d is not None:
        input = convert(input, d)
    must_float(record.name, input.dtype)
    ndim = len(input.shape)
    if dim is None:
        dim = _implied(record.name, ndim)
    if ndim == 0:
        normalize_dim(dim, 0)
        return apply(record, (input.unsqueeze(0),), {"dim": 0}).squeeze(0)
    return apply(record, (input,), {"dim": normalize_dim(dim, ndim)})


@method()
@autocasts(cuda="float32")
def softmax(input: Any, dim: int | None = None, *, dtype: dtype | None = None) -> Any:
    """Divide exp(input) by its sum along `dim`.

    >>> import tracejit
    >>> tracejit.softmax(tracejit.zeros(2, 4), 1)[0].tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    found = NotImplemented if dtype else _softmax_direct.direct((input,), dim)
    return _along(softmax_record, input, dim, dtype) if found is NotImplemented else found


@method()
@autocasts(cuda="float32")
def log_softmax(input: Any, dim: int | None = None, *, dtype: dtype | None = None) -> Any:
    """Return the logarithm of `softmax` along dimension `dim`, without its rounding; same shape.

    >>> import tracejit
    >>> tracejit.nn.functional.log_softmax(tracejit.tensor([0.0, 1.0]), 0)
    tensor([-1.3133, -0.3133])
    """
    found = NotImplemented if dtype else _log_softmax_direct.direct((input,), dim)
    return _along(log_softmax_record, input, dim, dtype) if found is NotImplemented else found


@autocasts(cuda="float32")
def softmin(input: Any, dim: int | None = None, *, dtype: dtype | None = None) -> Any:
    """Return `softmax` of -input along dimension `dim`; same shape.

    >>> import tracejit
    >>> tracejit.nn.functional.softmin(tracejit.tensor([0.0, 1.0]), 0)
    tensor([0.7311, 0.2689])
    """
    dim = _implied("softmin", len(input.shape)) if dim is None else dim
    return softmax(-input, dim, dtype=dtype)


def _finite(x: Any) -> Any:
    return where(isfinite(x), x, 0)


def _logsumexp_body(input: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    x = widened(input)
    sizes = x.real if x.dtype.category == COMPLEX else x
    # inf - inf is NaN, so infinite maxima are not subtracted.
    largest = _finite(amax_record(sizes, dims=dims, keepdim=True))
    total = log(exp(x - largest).sum(dims, True)) + largest
    return convert(total if keepdim else total.squeeze(dims), input.dtype)


def _logsumexp_type(input: Any, dims: tuple[int, ...], keepdim: bool) -> TensorType:
    return TensorType(input.dtype, reduced_shape(input.shape, dims, keepdim), input.device)


def _logsumexp_rule(grad: Any, input: Any, out: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    return restored(grad, dims, keepdim) * exp(input - restored(out, dims, keepdim))


logsumexp_record = composite("logsumexp", ("input",), _logsumexp_body, infer=_logsumexp_type,
                             input=_logsumexp_rule)


@method()
def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """Return log(sum(exp(input))) over one or several dimensions.

    >>> import tracejit
    >>> tracejit.logsumexp(tracejit.tensor([1000., 1000.]), 0)
    tensor(1000.6932)
    """
    if input.dtype.category < FLOATING:
        input = convert(input, get_default_dtype())
    if input.dtype.category != COMPLEX:
        must_float("logsumexp", input.dtype)
    dims = normalize_dims(dim, len(input.shape))
    if not len(input.shape):
        return logsumexp(input.unsqueeze(0), 0)
    return apply(logsumexp_record, (input,), {"dims": dims, "keepdim": keepdim})
