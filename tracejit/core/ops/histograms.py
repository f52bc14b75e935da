"""Histograms: how many values, or how much weight, lies between edges.

In: floating values, edges or a number of bins. Out: counts and edges. Programs call the array
library here. Called by users.
"""

from __future__ import annotations

import builtins
from collections import namedtuple
from typing import Any

import numpy as np

from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_record import is_tensor
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import as_size, equal, shape_text
from tracejit.core.ops.types import CPP_NAMES, SCALAR_NAMES, TensorType, float32, float64

HistogramResult = namedtuple("histogram", ["hist", "bin_edges"])  # type: ignore[name-match]
HistogramddResult = namedtuple("histogramdd", ["hist", "bin_edges"])  # type: ignore[name-match]


def _even_edges(xp: Any, values: Any, bins: int, bounds: tuple | None, dim: int) -> Any:
    """Return edges of bins of one width between the bounds, or between the extremes of the
    values."""
    if bounds is not None:
        low, high = bounds
    elif values.size:
        low, high = float(values.min()), float(values.max())
    else:
        low, high = 0.0, 1.0
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"torch.histogramdd: dimension {dim}'s range [{low:g}, {high:g}] is not "
                           "finite")
    if low > high:
        raise RuntimeError(f"torch.histogramdd: min should not exceed max, but got min {low:g} max "
                           f"{high:g} for dimension {dim}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return xp.linspace(low, high, bins + 1).astype(values.dtype)


edges_record = Op(
    "histogram_edges", "extern", ("values",), eager=_even_edges, may_fail=True,
    infer=lambda values, bins, bounds, dim: TensorType(values.dtype, (bins + 1,), values.device),
)  # fmt: skip


def _counts(xp: Any, values: Any, *others: Any, weighted: bool, density: bool) -> Any:
    """Count values (n, d); `others` are the edges of each dimension, then weights."""
    edges = others[: values.shape[1]]
    weights = others[-1].astype(np.float64) if weighted else None
    if any((edge[1:] < edge[:-1]).any() for edge in edges):
        raise RuntimeError("torch.histogramdd: edges must be in ascending order")
    hist, _ = xp.histogramdd(values, edges, density=density, weights=weights)
    return hist.astype(values.dtype)


def _counts_type(values: Any, *others: Any, weighted: bool, density: bool) -> TensorType:
    edges = others[:-1] if weighted else others
    return TensorType(values.dtype, tuple(e.shape[0] - 1 for e in edges), values.device)


counts_record = Op(
    "histogram_counts", "extern", ("values", "*others"), infer=_counts_type, eager=_counts,
    may_fail=True)


def _checked(rows: Any, weight: Any) -> None:
    if rows.dtype not in (float32, float64):
        raise NotImplementedError(
            f"\"histogramdd\" not implemented for '{SCALAR_NAMES[rows.dtype.name]}'")
    if weight is not None and (len(weight.shape) != len(rows.shape) - 1
                               or not all(map(equal, weight.shape, rows.shape))):
        raise RuntimeError("torch.histogramdd: if weight tensor is provided it should have the "
                           "same shape as the input tensor excluding its innermost dimension, but "
                           f"got input with shape {shape_text(rows.shape)} and weight with shape "
                           f"{shape_text(weight.shape)}")
    if weight is not None and weight.dtype is not rows.dtype:
        raise RuntimeError("torch.histogramdd: if weight tensor is provided, input tensor and "
                           "weight tensor should have the same dtype, but got input(and bins) "
                           f"{SCALAR_NAMES[rows.dtype.name]}, and weight "
                           f"{SCALAR_NAMES[weight.dtype.name]}")


def _edges(rows: Any, bins: Any, bounds: tuple | None, dim: int, name: str) -> Any:
    if is_tensor(bins) and not isinstance(bins, int):
        if bins.dtype is not rows.dtype:
            raise RuntimeError("torch.histogramdd: input tensor and bins tensors should have the "
                               f"same dtype, but got input with dtype {CPP_NAMES[rows.dtype.name]}"
                               f" and bins for dimension {dim} with dtype "
                               f"{CPP_NAMES[bins.dtype.name]}")
        if len(bins.shape) != 1:
            raise RuntimeError("torch.histogramdd: bins tensor should have one dimension, but got "
                               f"{len(bins.shape)} dimensions in the bins tensor for dimension "
                               f"{dim}")
        return bins.clone()
    count = as_size(bins)
    if count <= 0:
        raise RuntimeError(f"torch.{name}(): bins must be > 0, but got {count} for dimension {dim}")
    return edges_record(rows.select(1, dim), bins=int(count), bounds=bounds, dim=dim)


def _histogram(rows: Any, edges: list, weight: Any, density: bool) -> Any:
    others = edges if weight is None else [*edges, weight.reshape((-1,))]
    return counts_record(rows, *others, weighted=weight is not None, density=bool(density))


@method()
def histogram(input: Any, bins: Any, *, range: Any = None, weight: Any = None,
              density: bool = False) -> Any:
    """Return (hist, bin_edges): the number of elements, or the sum of their weights, in each bin.

    The last bin includes its end.

    bins: a number of bins of one width over `range` (None: of the data), or a vector of edges.
    density: divided by the total and by the widths, so that the integral is 1.

    >>> import tracejit
    >>> tracejit.tensor([1.0, 2.0, 1.0]).histogram(4, range=(0.0, 3.0)).hist.tolist()
    [0.0, 2.0, 1.0, 0.0]

    RuntimeError for no bins, and for ranges that are not finite or the wrong way round.
    """
    rows = input.reshape((-1, 1))
    given = weight if weight is None else weight.reshape((-1,))
    _checked(rows, given)
    bounds = None if range is None else tuple(float(x) for x in range)
    edges = _edges(rows, bins, bounds, 0, "histogram")
    return HistogramResult(_histogram(rows, [edges], given, density), edges)


def histogramdd(input: Any, bins: Any, *, range: Any = None, weight: Any = None,
                density: bool = False) -> Any:
    """Return (hist, bin_edges) of points, the last dimension of `input` (*, d); see `histogram`.

    `hist` has d dimensions, and `bin_edges` a vector for each coordinate. RuntimeError for fewer
    than 2 dimensions or another number of bins.

    bins   a number, a list of numbers or a list of vectors
    range  low and high of each coordinate

    >>> import tracejit
    >>> hist, edges = tracejit.histogramdd(tracejit.tensor([[0.0, 0.0], [1.0, 1.0]]), bins=2)
    >>> hist
    tensor([[1., 0.],
            [0., 1.]])
    """
    if len(input.shape) < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    width = int(input.shape[-1])
    rows = input.reshape((-1, width))
    given = weight if weight is None else weight.reshape((-1,))
    _checked(rows, given)
    each = bins if isinstance(bins, (tuple, list)) else [bins] * width
    if len(each) != width:
        raise RuntimeError("torch.histogramdd: The size of bins must be equal to the innermost "
                           "dimension of the input.")
    bounds = [None] * width if range is None else [
        (float(range[2 * k]), float(range[2 * k + 1])) for k in builtins.range(width)]
    edges = [_edges(rows, b, bounds[k], k, "histogramdd") for k, b in enumerate(each)]
    return HistogramddResult(_histogram(rows, edges, given, density), tuple(edges))

