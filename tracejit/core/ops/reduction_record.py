"""Records of the reductions, how kernels combine, and their derivatives.

In: tensors; attributes `dims` (sorted, >= 0) and `keepdim`. Out: tensors with those dimensions
gone, or of size 1. Called by `reduction.py` and by gradient rules. float16 and bfloat16 accumulate
in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.core.ops.array_sums import summed
from tracejit.core.ops.creation import eye_of
from tracejit.core.ops.movement import unsqueeze_record
from tracejit.core.ops.pointwise import convert, where
from tracejit.core.ops.record import Op, Reduce
from tracejit.core.ops.shapes import numel
from tracejit.core.ops.types import (
    BOOL,
    FLOATING,
    TensorType,
    bfloat16,
    bool_,
    dtype,
    dtype_of_numpy,
    float16,
    float32,
    int64,
)

_HALVES = (float16.numpy, bfloat16.numpy)


def reduced_shape(shape: Sequence[Any], dims: tuple[int, ...], keepdim: bool) -> tuple:
    """Return `shape` without `dims`, or with 1 in their places."""
    if keepdim:
        return tuple(1 if d in dims else size for d, size in enumerate(shape))
    return tuple(size for d, size in enumerate(shape) if d not in dims)


def restored(grad: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    """Insert the reduced dimensions of a tensor again, of size 1."""
    if not keepdim:
        for dim in dims:
            grad = unsqueeze_record(grad, dim=dim)
    return grad


def _infer(result: dtype | None) -> Callable[..., TensorType]:
    def infer(input: Any, dims: tuple[int, ...], keepdim: bool) -> TensorType:
        shape = reduced_shape(input.shape, dims, keepdim)
        return TensorType(result or input.dtype, shape, input.device)

    return infer


def _eager(name: str) -> Callable[..., Any]:
    def run(xp: Any, x: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
        if name in ("sum", "prod") and x.dtype.kind not in "iub":
            x = _in_order(xp, x)
        if name == "sum" and x.dtype.kind not in "iub":
            wide = x.astype(np.float32) if x.dtype in _HALVES else x
            return summed(xp, wide, dims, keepdim).astype(x.dtype, copy=False)
        if x.dtype in _HALVES:
            wide = x.astype(np.float32)
            return getattr(xp, name)(wide, axis=dims, keepdims=keepdim).astype(x.dtype)
        return getattr(xp, name)(x, axis=dims, keepdims=keepdim)

    return run


def _in_order(xp: Any, x: Any) -> Any:
    """Return the elements in row-major memory, repeated ones once.

    NumPy adds in the order of memory, and a program may hold the elements in another.
    """
    if 0 not in x.strides:
        return xp.ascontiguousarray(x).reshape(x.shape)
    once = x[tuple(slice(None if stride else 1) for stride in x.strides)]
    return xp.broadcast_to(xp.ascontiguousarray(once).reshape(once.shape), x.shape)


def _extreme(name: str, identity: Callable[[dtype], Any]) -> Callable[..., Any]:
    """Make `_eager` for a function without an identity in NumPy: of nothing, that of kernels."""
    run = _eager(name)

    def extreme(xp: Any, x: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
        if x.size:
            return run(xp, x, dims, keepdim)
        shape = reduced_shape(x.shape, dims, keepdim)
        return xp.full(shape, identity(dtype_of_numpy(x.dtype)), x.dtype)

    return extreme


def _position(name: str) -> Callable[..., Any]:
    def run(xp: Any, x: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
        if x.dtype in _HALVES:
            x = x.astype(np.float32)
        kept = [d for d in range(x.ndim) if d not in dims]
        sizes = [x.shape[d] for d in kept]
        rows = x.transpose(*kept, *dims).reshape(*sizes, numel(x.shape[d] for d in dims))
        found = getattr(xp, name)(rows, axis=-1)
        return found.reshape(reduced_shape(x.shape, dims, keepdim))

    return run


def _lowest(d: dtype) -> Any:
    if d.category == FLOATING:
        return -float("inf")
    return False if d.category == BOOL else int(np.iinfo(d.numpy).min)


def _highest(d: dtype) -> Any:
    if d.category == FLOATING:
        return float("inf")
    return True if d.category == BOOL else int(np.iinfo(d.numpy).max)


def _sum_rule(grad: Any, input_type: TensorType, dims: tuple[int, ...], keepdim: bool) -> Any:
    return restored(grad, dims, keepdim).expand(input_type.shape)


def extreme_rule(grad: Any, input: Any, out: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    """Share the gradient of an extreme evenly among the elements that equal it."""
    return _shared(grad, input == restored(out, dims, keepdim), dims, keepdim)


def extreme_or_nan_rule(grad: Any, input: Any, out: Any, dims: tuple[int, ...],
                        keepdim: bool) -> Any:
    """Apply `extreme_rule`; where the extreme is nan, elements that are nan share its gradient."""
    out = restored(out, dims, keepdim)
    alike = input == out
    if input.dtype.category >= FLOATING:
        alike = alike | ((input != input) & (out != out))
    return _shared(grad, alike, dims, keepdim)


def _shared(grad: Any, alike: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    """Return the gradient of each extreme, over how many elements of its row are `alike`.

    They are counted in an integer: a half counts no further than 65504.
    """
    share = restored(grad, dims, keepdim) * convert(alike, grad.dtype)
    ties = sum_record(convert(alike, int64), dims=dims, keepdim=True)
    if grad.dtype.itemsize > 2:
        return share / convert(ties, grad.dtype)
    return convert(convert(share, float32) / convert(ties, float32), grad.dtype)


def _prod_rule(grad: Any, input: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    if not dims:
        return grad
    wide = restored(grad, dims, keepdim)
    if len(dims) == 1:
        return wide * prod_others(input, dim=dims[0])
    if len(dims) == len(input.shape):
        return wide * prod_others(input.reshape(-1), dim=0).reshape(tuple(input.shape))
    order = (*(d for d in range(len(input.shape)) if d not in dims), *dims)
    moved = input.permute(order)
    others = prod_others(moved.flatten(len(order) - len(dims)), dim=len(order) - len(dims))
    back = tuple(order.index(d) for d in range(len(order)))
    return wide * others.reshape(tuple(moved.shape)).permute(back)


def _record(name: str, eager: str, combine: str, identity: Callable[[dtype], Any],
            rule: Callable[..., Any] | None, result: dtype | None = None) -> Op:
    run = _extreme(eager, identity) if eager in ("max", "min") else _eager(eager)
    return Op(name, "reduction", ("input",), infer=_infer(result), eager=run,
              reduce=Reduce(combine, identity), rules={} if rule is None else {"input": rule})


_LARGER = "({b} if ({b} > {a}) or ({b} != {b}) else {a})"
_SMALLER = "({b} if ({b} < {a}) or ({b} != {b}) else {a})"

sum_record = _record("sum", "sum", "{a} + {b}", lambda d: 0, _sum_rule)
prod_record = _record("prod", "prod", "{a} * {b}", lambda d: 1, _prod_rule)
amax_record = _record("amax", "max", _LARGER, _lowest, extreme_rule)
amin_record = _record("amin", "min", _SMALLER, _highest, extreme_rule)
# The same, under the names PyTorch's backward nodes have.
max_record = _record("max", "max", _LARGER, _lowest, extreme_or_nan_rule)
min_record = _record("min", "min", _SMALLER, _highest, extreme_or_nan_rule)
max_record.node_name, min_record.node_name = "MaxBackward1", "MinBackward1"
any_record = _record("any", "any", "{a} | {b}", lambda d: False, None, bool_)
all_record = _record("all", "all", "{a} & {b}", lambda d: True, None, bool_)

argmax_record: Op = Op(
    "argmax", "reduction", ("input",), infer=_infer(int64), eager=_position("argmax"),
    reduce=Reduce("({b} > {a}) or (({b} != {b}) and ({a} == {a}))", _lowest, position=True),
)  # fmt: skip
argmin_record: Op = Op(
    "argmin", "reduction", ("input",), infer=_infer(int64), eager=_position("argmin"),
    reduce=Reduce("({b} < {a}) or (({b} != {b}) and ({a} == {a}))", _highest, position=True),
)  # fmt: skip


# -- products without one factor: the derivative of prod, exact where factors are zero ------------


def _others_body(input: Any, dim: int) -> Any:
    # Divide by no zero: with one zero in a row, only the product without it is not 0.
    zero = input == 0
    safe = where(zero, 1, input)
    product = prod_record(safe, dims=(dim,), keepdim=True)
    zeros = sum_record(convert(zero, int64), dims=(dim,), keepdim=True)
    return where(zeros == 0, product / safe, where((zeros == 1) & zero, product, 0))


def _others_rule(grad: Any, input: Any, dim: int) -> Any:
    """Return, by j, the sum over i of grad[i] times the product of all but elements i and j."""
    ndim = len(input.shape)
    last = input.movedim(dim, -1)
    same = eye_of(input, last.shape[-1], last.shape[-1], bool_)
    without_j = where(same, 1, last.unsqueeze(-2))
    without_both = where(same, 0, prod_others(without_j, dim=ndim))
    terms = grad.movedim(dim, -1).unsqueeze(-2) * without_both
    return sum_record(terms, dims=(ndim,), keepdim=False).movedim(-1, dim)


prod_others: Op = Op(
    "prod_others", "composite", ("input",),
    infer=lambda input, dim: TensorType(input.dtype, tuple(input.shape), input.device),
    body=_others_body,
    rules={"input": _others_rule},
)  # fmt: skip
