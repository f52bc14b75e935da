"""Softmax over the elements that a sparse tensor has, along a dimension; the others count as -inf.

In: a sparse tensor. Out: one with elements at the same positions, each once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tracejit.core.ops import softmax as dense
from tracejit.core.ops.creation import zeros, zeros_like
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.shapes import normalize_dim
from tracejit.core.ops.types import dtype
from tracejit.sparse.tensor import SparseTensor


def softmax(input: SparseTensor, dim: int, *, dtype: dtype | None = None) -> SparseTensor:
    """Compute the softmax along a dimension, over the elements that are there.

    >>> import tracejit
    >>> x = tracejit.sparse_coo_tensor([[0, 4]], [1.0, 1.0], (5,))
    >>> tracejit.sparse.softmax(x, 0).values()
    tensor([0.5000, 0.5000])
    """
    return _along(input, dim, dtype, dense.softmax, lambda x, total: x.exp() / total)


def log_softmax(input: SparseTensor, dim: int, *, dtype: dtype | None = None) -> SparseTensor:
    """Compute the logarithm of `softmax`."""
    return _along(input, dim, dtype, dense.log_softmax, lambda x, total: x - total.log())


def _along(input: SparseTensor, dim: int, kind: dtype | None, whole: Callable[..., Any],
           result: Callable[[Any, Any], Any]) -> SparseTensor:
    kept, k = input.coalesce(), normalize_dim(dim, input.dim())
    x = kept.elements if kind is None else convert(kept.elements, kind)
    if k >= kept.sparse_dim():
        return kept._with(whole(x, k - kept.sparse_dim() + 1))
    # Elements that differ only in dimension k form a group: number the groups.
    group, count = zeros_like(kept.positions.select(0, 0)), 1
    for d, (row, extent) in enumerate(zip(kept.positions, kept.extents)):
        if d != k:
            group, count = group * extent + row, count * extent
    sizes = (count, *x.shape[1:])
    # Subtracting the highest element keeps exp from overflowing.
    highest = x.new_full(sizes, -math.inf).index_reduce(0, group, x.detach(), "amax")
    shifted = x - highest.index_select(0, group)
    total = zeros(sizes, dtype=x.dtype, device=x.device).index_add(0, group, shifted.exp())
    return kept._with(result(shifted, total.index_select(0, group)))
