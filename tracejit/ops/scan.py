"""Running sums and products along a dimension.

In: a tensor and a dimension. Out: a tensor of the same shape. Called by users. Programs call
the array library here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.ops.creation import eye_of
from tracejit.ops.operators import method
from tracejit.ops.pointwise import convert, where
from tracejit.ops.record import Op
from tracejit.ops.reduction import sum_record
from tracejit.ops.shapes import normalize_dim
from tracejit.ops.types import (
    FLOATING,
    TensorType,
    bfloat16,
    bool_,
    dtype,
    float16,
    float32,
    int64,
)  # fmt: skip

# Partial results are kept wider than the elements, so that errors do not pile up along the way.
_WIDER = {float32.numpy: np.float64, float16.numpy: np.float32, bfloat16.numpy: np.float32}


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
    """By i: the sum over k >= i of grad[k] times the running product at k without factor i."""
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
def cumsum(input: Any, dim: int, *, dtype: dtype | None = None) -> Any:
    """Sums of the elements up to each, along `dim`. Integers sum in int64.

    >>> import tracejit
    >>> tracejit.tensor([1, 2, 3]).cumsum(0).tolist()
    [1, 3, 6]
    """
    return cumsum_record(_summable(input, dtype), dim=normalize_dim(dim, len(input.shape)))


@method()
def cumprod(input: Any, dim: int, *, dtype: dtype | None = None) -> Any:
    """Products of the elements up to each, along `dim`. Integers multiply in int64."""
    return cumprod_record(_summable(input, dtype), dim=normalize_dim(dim, len(input.shape)))
