"""Records of max pooling: the largest element of each window, and where it is.

In: (N, C, *spatial) with windows of one size, or as many windows as the caller asks for
(`adaptive`). Out: values, and their positions in the flattened spatial dimensions. The first among
equals counts; NaN is larger than all else. `max_pool_backward` adds at those positions. Called by
`pooling.py`.

On the CPU, library kernels pool windows of one size in float32 and float64. All else calls the
array library, which visits a window's elements one by one, each for all windows at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tracejit.core.ops.gather_scatter import gather_record
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import numel
from tracejit.core.ops.types import TensorType, bfloat16, float16, int64

_HALVES = (float16.numpy, bfloat16.numpy)
_TOGETHER = 1 << 16  # windows visited at once, few enough for the cache


class Reach(NamedTuple):
    """Windows whose element number k lies inside, and where in the input it is."""

    windows: slice
    elements: slice


def reach(k: int, size: int, out: int, stride: int, padding: int, dilation: int) -> Reach | None:
    """Return which of `out` windows over `size` elements have their element k inside; None: none.

    >>> reach(0, 5, 3, 2, 1, 1)
    Reach(windows=slice(1, 3, None), elements=slice(1, 4, 2))
    """
    first = k * dilation - padding
    low = max(0, -(first // stride))
    high = min(out, (size - 1 - first) // stride + 1)
    if high <= low:
        return None
    start = low * stride + first
    return Reach(slice(low, high), slice(start, start + (high - low - 1) * stride + 1, stride))


def _types(input: Any, out: tuple) -> tuple[TensorType, TensorType]:
    shape = (*input.shape[:2], *out)
    return TensorType(input.dtype, shape, input.device), TensorType(int64, shape, input.device)


# -- windows of one size ---------------------------------------------------------------------------
def _visits(
    sizes: Sequence[int], out: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple
) -> list[tuple[tuple, tuple]]:
    """Return (which windows, which elements) for each element of a window, in row-major order."""
    along = [
        [reach(k, n, o, s, p, d) for k in range(count)]
        for n, o, count, s, p, d in zip(sizes, out, kernel, stride, padding, dilation)
    ]
    found = []
    for each in product(*along):
        inside = [r for r in each if r is not None]
        if len(inside) == len(each):
            windows, elements = zip(*inside)
            found.append(((slice(None), *windows), (slice(None), *elements)))
    return found


def _flat_positions(xp: Any, sizes: Sequence[int], elements: Sequence[slice]) -> Any:
    """Return where these elements are in the flattened spatial dimensions."""
    where = xp.zeros((), np.int64)
    for size, part in zip(sizes, elements):
        where = xp.expand_dims(where * size, -1) + xp.arange(part.start, part.stop, part.step)
    return where


def _largest(xp: Any, x: Any, best: Any, at: Any, visits: list) -> None:
    """Write values into `best` and positions into `at`."""
    sizes = x.shape[1:]
    for windows, elements in visits:
        xp.maximum(best[windows], x[elements], out=best[windows])
    for windows, elements in reversed(visits):  # the first of equal elements is written last
        where = _flat_positions(xp, sizes, elements[1:])
        xp.copyto(at[windows], where, where=best[windows] == x[elements])
    if x.dtype.kind == "f" and xp.isnan(best).any():  # NaN equals nothing; the last one counts
        for windows, elements in visits:
            where = _flat_positions(xp, sizes, elements[1:])
            xp.copyto(at[windows], where, where=xp.isnan(x[elements]))


def _max_pool(
    xp: Any, x: Any, out: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple
) -> Any:
    result, sizes = x.dtype, x.shape[2:]
    planes = xp.ascontiguousarray(x.astype(np.float32) if result in _HALVES else x)
    planes = planes.reshape(math.prod(x.shape[:2]), *sizes)
    lowest = -np.inf if planes.dtype.kind == "f" else np.iinfo(planes.dtype).min
    best = xp.full((len(planes), *out), lowest, planes.dtype)
    at = xp.zeros(best.shape, np.int64)
    visits = _visits(sizes, out, kernel, stride, padding, dilation)
    step = max(1, _TOGETHER // max(1, math.prod(out)))
    for k in range(0, len(planes), step):
        _largest(xp, planes[k:k + step], best[k:k + step], at[k:k + step], visits)
    shape = (*x.shape[:2], *out)
    return best.reshape(shape).astype(result, copy=False), at.reshape(shape)


# -- as many windows as are asked for --------------------------------------------------------------
def adaptive_bounds(size: int, out: int) -> Iterator[tuple[int, int]]:
    """Return (begin, end) of each of `out` windows over `size` elements; neighbours may overlap.

    >>> list(adaptive_bounds(5, 2))
    [(0, 3), (2, 5)]
    """
    return ((k * size // out, -(-(k + 1) * size // out)) for k in range(out))


def _adaptive_max_pool(xp: Any, x: Any, out: tuple) -> Any:
    result, sizes = x.dtype, x.shape[2:]
    x = x.astype(np.float32) if result in _HALVES else x
    best = xp.empty((*x.shape[:2], *out), x.dtype)
    at = xp.zeros(best.shape, np.int64)
    bounds = [list(adaptive_bounds(n, o)) for n, o in zip(sizes, out)]
    for window in product(*map(range, out)):
        inside = tuple(slice(*bounds[d][k]) for d, k in enumerate(window))
        part = x[(..., *inside)]
        part = part.reshape(*x.shape[:2], math.prod(part.shape[2:]))
        place = part.argmax(-1)
        value = xp.take_along_axis(part, place[..., None], -1)[..., 0]
        last = part.shape[-1] - 1 - xp.isnan(part)[..., ::-1].argmax(-1)
        where = _flat_positions(xp, sizes, [slice(s.start, s.stop, 1) for s in inside]).reshape(-1)
        best[(..., *window)] = value
        at[(..., *window)] = where[xp.where(xp.isnan(value), last, place)]
    return best.astype(result, copy=False), at


# -- gradients -------------------------------------------------------------------------------------
def _added(xp: Any, grad: Any, indices: Any, sizes: tuple) -> Any:
    count, total = math.prod(grad.shape[:2]), math.prod(sizes)
    places = indices.reshape(count, math.prod(indices.shape[2:]))
    places = places + xp.arange(count)[:, None] * total
    summed = xp.bincount(
        places.reshape(-1), grad.reshape(-1).astype(np.float64), minlength=count * total
    )
    return summed.astype(grad.dtype).reshape(*grad.shape[:2], *sizes)


def picked(input: Any, indices: Any) -> Any:
    """Return the elements of (N, C, *spatial) at flat positions, in the shape of `indices`."""
    shape = tuple(indices.shape)
    lead = shape[:2]
    rows = input.reshape((*lead, numel(input.shape[2:])))
    places = indices.reshape((*lead, numel(shape[2:])))
    return gather_record(rows, places, dim=2).reshape(shape)


max_pool_backward_record: Op = Op(
    "max_pool_backward", "extern", ("grad", "indices"),
    infer=lambda grad, indices, sizes: TensorType(
        grad.dtype, (*grad.shape[:2], *sizes), grad.device
    ),
    eager=_added, library=True,
    rules={"grad": lambda grad, indices: picked(grad, indices)},
)  # fmt: skip


def _to_input(grad: Any, indices: Any, input_type: TensorType) -> Any:
    return max_pool_backward_record(grad, indices, sizes=tuple(input_type.shape[2:]))


max_pool_records: dict[int, Op] = {
    n: Op(
        f"max_pool{n}d", "extern", ("input",), outputs=("values", "indices"),
        infer=lambda input, out, kernel, stride, padding, dilation: _types(input, out),
        eager=_max_pool, library=True, rules={"input": _to_input},
        node_name=f"MaxPool{n}DWithIndicesBackward0",
    )
    for n in (1, 2, 3)
}  # fmt: skip

adaptive_max_pool_records: dict[int, Op] = {
    n: Op(
        f"adaptive_max_pool{n}d", "extern", ("input",), outputs=("values", "indices"),
        infer=_types, eager=_adaptive_max_pool, rules={"input": _to_input},
        node_name=f"AdaptiveMaxPool{n}DBackward0",
    )
    for n in (1, 2, 3)
}  # fmt: skip
