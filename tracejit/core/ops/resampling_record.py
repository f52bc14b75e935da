"""Sums along spatial dimensions, one dimension after the other: average pooling and interpolation.

In: (N, C, *spatial), the sizes of the result, and `how` for each dimension: a kind of taps and its
details. Out: (N, C, *out). Each record is linear. Its gradient is its transpose, a record of its
own whose gradient is the first record again. Called by `pooling.py` and `interpolation.py`.

Library kernels average in float32 and float64 on the CPU. All else calls the array library. Halves
are computed in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.core.ops.record import Op
from tracejit.core.ops.resampling_taps import Tap, taps_of
from tracejit.core.ops.types import TensorType, bfloat16, float16

_HALVES = (float16.numpy, bfloat16.numpy)


# -- on arrays -------------------------------------------------------------------------------------
def _at(xp: Any, axis: int, place: Any) -> tuple:
    return (*(slice(None),) * axis, place if isinstance(place, slice) else xp.asarray(place))


def _weighted(xp: Any, part: Any, weight: np.ndarray | None, axis: int) -> Any:
    if weight is None:
        return part
    return part * xp.asarray(weight, part.dtype).reshape(-1, *(1,) * (part.ndim - 1 - axis))


def _apart(tap: Tap) -> list[Tap]:
    """Split `tap` into taps that read no element twice; slices where a slice will do."""
    if isinstance(tap.source, slice) or not len(tap.source):
        return [tap]
    source = np.asarray(tap.source)
    target = np.arange(len(source)) if isinstance(tap.target, slice) else tap.target
    new = np.diff(source, prepend=-1) != 0
    first = np.maximum.accumulate(np.where(new, np.arange(len(source)), 0))
    turn = np.arange(len(source)) - first  # how often the element was read before
    found = []
    for k in range(int(turn.max()) + 1):
        (chosen,) = np.nonzero(turn == k)
        weight = None if tap.weight is None else tap.weight[chosen]
        found.append(Tap(_as_slice(target[chosen]), _as_slice(source[chosen]), weight))
    return found


def _as_slice(places: np.ndarray) -> Any:
    step = int(places[1] - places[0]) if len(places) > 1 else 1
    if (np.diff(places) == step).all():
        return slice(int(places[0]), int(places[-1]) + 1, step)
    return places


def _gathered(xp: Any, x: Any, axis: int, out: int, taps: list[Tap]) -> Any:
    y = xp.zeros((*x.shape[:axis], out, *x.shape[axis + 1:]), x.dtype)
    for tap in taps:
        read = x[_at(xp, axis, tap.source)]
        y[_at(xp, axis, tap.target)] += _weighted(xp, read, tap.weight, axis)
    return y


def _spread(xp: Any, y: Any, axis: int, size: int, taps: list[Tap]) -> Any:
    """Compute the transpose of `_gathered`."""
    x = xp.zeros((*y.shape[:axis], size, *y.shape[axis + 1:]), y.dtype)
    # `+=` at a list of places adds once where a place repeats.
    for tap in (part for whole in taps for part in _apart(whole)):
        read = y[_at(xp, axis, tap.target)]
        x[_at(xp, axis, tap.source)] += _weighted(xp, read, tap.weight, axis)
    return x


def _along(xp: Any, function: Any, x: Any, axis: int, size: int, taps: list[Tap]) -> Any:
    """Apply `function` along `axis`; lists of places are read faster where rows are taken whole."""
    if axis < x.ndim - 1 or all(isinstance(tap.source, slice) for tap in taps):
        return function(xp, x, axis, size, taps)
    turned = xp.ascontiguousarray(x.swapaxes(axis - 1, axis))
    found = function(xp, turned, axis - 1, size, taps)
    return xp.ascontiguousarray(found.swapaxes(axis - 1, axis))


def _divided(xp: Any, x: Any, counts: Sequence[np.ndarray | None]) -> Any:
    total: Any = 1
    for k, each in enumerate(counts):
        if each is None:
            return x
        same = len(each) and (each == each[0]).all()
        total = total * (each[0] if same else each.reshape(-1, *(1,) * (len(counts) - 1 - k)))
    total = xp.asarray(total, x.dtype)
    return x / total if x.dtype.kind == "f" else xp.sign(x) * (abs(x) // total)


def _forward(xp: Any, x: Any, out: tuple, how: tuple) -> Any:
    result, lead = x.dtype, x.ndim - len(out)
    x = x.astype(np.float32) if result in _HALVES else x
    found = [taps_of(n, o, x.dtype, *each) for n, o, each in zip(x.shape[lead:], out, how)]
    for k, each in enumerate(found):
        x = _along(xp, _gathered, x, lead + k, out[k], each.taps)
    return _divided(xp, x, [each.counts for each in found]).astype(result, copy=False)


def _backward(xp: Any, grad: Any, sizes: tuple, how: tuple) -> Any:
    result, lead = grad.dtype, grad.ndim - len(sizes)
    grad = grad.astype(np.float32) if result in _HALVES else grad
    out = grad.shape[lead:]
    found = [taps_of(n, o, grad.dtype, *each) for n, o, each in zip(sizes, out, how)]
    grad = _divided(xp, grad, [each.counts for each in found])
    for k, each in enumerate(found):
        grad = _along(xp, _spread, grad, lead + k, sizes[k], each.taps)
    return grad.astype(result, copy=False)


# -- records ---------------------------------------------------------------------------------------
def _resized(input: Any, sizes: tuple) -> TensorType:
    return TensorType(input.dtype, (*input.shape[:2], *sizes), input.device)


def resampling(name: str, node_name: str, library: bool = False) -> Op:
    """Make the record of a linear function of (N, C, *spatial), and the record of its transpose."""
    transpose = Op(
        f"{name}_backward", "extern", ("grad",),
        infer=lambda grad, sizes, how: _resized(grad, sizes), eager=_backward,
        library=library,
        rules={"grad": lambda grad, grad_type, how: forward(
            grad, out=tuple(grad_type.shape[2:]), how=how)},
    )  # fmt: skip
    forward = Op(
        name, "extern", ("input",),
        infer=lambda input, out, how: _resized(input, out), eager=_forward, node_name=node_name,
        library=library,
        rules={"input": lambda grad, input_type, how: transpose(
            grad, sizes=tuple(input_type.shape[2:]), how=how)},
    )  # fmt: skip
    return forward


avg_pool_records = {
    n: resampling(f"avg_pool{n}d", f"AvgPool{n}DBackward0", library=True) for n in (1, 2, 3)
}
adaptive_avg_pool_records = {
    n: resampling(f"adaptive_avg_pool{n}d", f"AdaptiveAvgPool{n}DBackward0", library=True)
    for n in (1, 2, 3)
}
