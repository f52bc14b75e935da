"""Taps of a resampled dimension: elements and their weights, added up for each result.

In: the size of a dimension, the size of the result, and the kind: pooling, interpolation. Out:
taps. A tap gives every element of the result at most one term. Called by `resampling_record.py`.
Positions are rounded in the dtype PyTorch computes them in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tracejit.core.ops.max_pool_record import adaptive_bounds, reach

ALL = slice(None)
_BITS = 22  # most bits behind the point in a weight of 15 bits


class Tap(NamedTuple):
    """result[target] += input[source] * weight; sources never go back."""

    target: Any
    source: Any
    weight: np.ndarray | None = None


class Taps(NamedTuple):
    """Taps of a dimension, and the divisor of each sum (None: no division)."""

    taps: list[Tap]
    counts: np.ndarray | None = None


# -- pooling ---------------------------------------------------------------------------------------
def _windows(
    size: int, out: int, dtype: np.dtype, kernel: int, stride: int, padding: int, counting: str
) -> Taps:
    """Make the taps of pooling.

    counting: "all" elements of a window, padding too; those "inside" the input; "nothing".
    """
    reached = [reach(k, size, out, stride, padding, 1) for k in range(kernel)]
    taps = [Tap(r.windows, r.elements) for r in reached if r is not None]
    start = np.arange(out) * stride - padding
    end = np.minimum(start + kernel, size + padding)
    if counting == "inside":
        start, end = np.maximum(start, 0), np.minimum(end, size)
    return Taps(taps, None if counting == "nothing" else np.maximum(end - start, 1))


def _adaptive(size: int, out: int, dtype: np.dtype) -> Taps:
    bounds = np.array(list(adaptive_bounds(size, out)), np.int64).reshape(out, 2)
    counts = bounds[:, 1] - bounds[:, 0]
    taps = []
    for k in range(int(counts.max(initial=0))):
        longer = np.flatnonzero(counts > k)
        taps.append(Tap(ALL if len(longer) == out else longer, bounds[longer, 0] + k))
    return Taps(taps, counts)


# -- interpolation ---------------------------------------------------------------------------------
def _scale(size: int, out: int, dtype: np.dtype, align: bool, factor: float | None) -> Any:
    """Return how far apart neighbours of the result are in the input."""
    if align:
        return dtype.type(size - 1) / dtype.type(out - 1) if out > 1 else dtype.type(0)
    if factor is not None and factor > 0:
        return dtype.type(1.0 / factor)
    return dtype.type(size) / dtype.type(out)


def _wide(dtype: np.dtype) -> np.dtype:
    return dtype if dtype == np.float64 else np.dtype(np.float32)


def _nearest(size: int, out: int, dtype: np.dtype, factor: float | None, centre: float) -> Taps:
    dtype = _wide(dtype)
    number, half = np.arange(out).astype(dtype), dtype.type(centre)
    wide = np.multiply(_scale(size, out, dtype, False, factor), number + half, dtype=np.float64)
    place = (wide - half).astype(dtype) + half  # rounded once, as a fused multiply-add is
    source = np.floor(place.astype(np.float32)).astype(np.int64)
    return Taps([Tap(ALL, np.minimum(source, size - 1))])


def _places(
    size: int, out: int, dtype: np.dtype, align: bool, factor: float | None
) -> np.ndarray:
    """Return where the elements of the result are in the input."""
    scale, number = _scale(size, out, dtype, align, factor), np.arange(out).astype(dtype)
    half = dtype.type(0.5)
    return scale * number if align else scale * (number + half) - half


def _split(place: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the element at or before `place`, and how far `place` is behind it."""
    before = np.minimum(np.floor(place).astype(np.int64), size - 1)
    return before, np.clip(place - before.astype(place.dtype), 0, 1).astype(place.dtype)


def _linear(size: int, out: int, dtype: np.dtype, align: bool, factor: float | None) -> Taps:
    if size == out:
        return Taps([Tap(ALL, ALL)])
    place = np.maximum(_places(size, out, _wide(dtype), align, factor), 0)
    before, behind = _split(place, size)
    after = np.minimum(before + 1, size - 1)
    return Taps([Tap(ALL, before, 1 - behind), Tap(ALL, after, behind)])


def _near(a: float, x: np.ndarray) -> np.ndarray:
    return ((a + 2) * x - (a + 3)) * x * x + 1


def _far(a: float, x: np.ndarray) -> np.ndarray:
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def _cubic(size: int, out: int, dtype: np.dtype, align: bool, factor: float | None) -> Taps:
    before, behind = _split(_places(size, out, _wide(dtype), align, factor), size)
    a = -0.75  # PyTorch's; -0.5 where antialiased
    weights = [_far(a, behind + 1), _near(a, behind), _near(a, 1 - behind), _far(a, 2 - behind)]
    return Taps([
        Tap(ALL, np.clip(before + k - 1, 0, size - 1), w.astype(behind.dtype))
        for k, w in enumerate(weights)
    ])  # fmt: skip


def _smooth_linear(x: np.ndarray) -> np.ndarray:
    return np.maximum(1 - abs(x), 0)


def _smooth_cubic(x: np.ndarray) -> np.ndarray:
    x = abs(x)
    return np.where(x < 1, _near(-0.5, x), np.where(x < 2, _far(-0.5, x), 0))


def _antialiased(
    size: int, out: int, dtype: np.dtype, align: bool, factor: float | None, cubic: bool
) -> Taps:
    """Make weights over as much of the input as an element of the result covers."""
    dtype = _wide(dtype)
    scale = float(_scale(size, out, dtype, align, factor))
    wider = max(scale, 1.0)
    support = (2 if cubic else 1) * wider
    centre = scale * (np.arange(out) + 0.5)
    start = np.maximum((centre - support + 0.5).astype(np.int64), 0)
    end = np.minimum((centre + support + 0.5).astype(np.int64), size)
    number = start[:, None] + np.arange(int((end - start).max(initial=0)))
    function = _smooth_cubic if cubic else _smooth_linear
    weights = function((number - centre[:, None] + 0.5) / wider) * (number < end[:, None])
    weights = (weights / weights.sum(1, keepdims=True)).astype(dtype)
    taps = []
    for k in range(number.shape[1]):
        longer = np.flatnonzero(end - start > k)
        taps.append(Tap(longer, number[longer, k], weights[longer, k]))
    return Taps(taps)


def _fixed(size: int, out: int, dtype: np.dtype, kind: str, *details: Any) -> Taps:
    """Return the taps of another kind with weights of 15 bits, as images of bytes are resampled.

    The largest weight uses all 15, but no more than 22 stand behind the point. Sums in float64 are
    exact.
    """
    taps = _once(_KINDS[kind](size, out, np.dtype(np.float64), *details).taps)
    largest = max((float(t.weight.max(initial=0)) for t in taps if t.weight is not None), default=0)
    bits = next(n for n in range(_BITS + 1) if n == _BITS or _up(largest * 2.0 ** (n + 1)) >= 2**15)
    return Taps([
        tap if tap.weight is None else tap._replace(weight=_up(tap.weight * 2.0**bits) / 2.0**bits)
        for tap in taps
    ])  # fmt: skip


def _up(x: Any) -> Any:
    """Round to the nearest integer, halves away from zero."""
    return np.trunc(x + np.copysign(0.5, x))


def _once(taps: list[Tap]) -> list[Tap]:
    """Join taps that read one element for one result: at the ends some do."""
    found = taps[:1]
    for tap in taps[1:]:
        last = found[-1]
        if tap.target is ALL and last.weight is not None and tap.weight is not None:
            same = tap.source == last.source
            found[-1] = last._replace(weight=np.where(same, 0, last.weight))
            tap = tap._replace(weight=np.where(same, last.weight, 0) + tap.weight)
        found.append(tap)
    return found


_KINDS: dict[str, Callable[..., Taps]] = {
    "windows": _windows, "adaptive": _adaptive, "nearest": _nearest, "linear": _linear,
    "cubic": _cubic, "antialiased": _antialiased, "fixed": _fixed,
}  # fmt: skip


def taps_of(size: int, out: int, dtype: np.dtype, kind: str, *details: Any) -> Taps:
    """Return the taps of a dimension of `size` elements that becomes one of `out`.

    >>> taps_of(3, 4, np.dtype(np.float32), "nearest", None, 0.0).taps[0].source.tolist()
    [0, 0, 1, 2]
    """
    return _KINDS[kind](size, out, dtype, *details)
