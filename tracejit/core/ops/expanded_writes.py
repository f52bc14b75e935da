"""Writes to some elements of an expanded tensor, several of which share a place in memory.

In: the tensor, along which dimensions its elements share memory, and what `masked_fill_`,
`index_fill_` and `index_put_` take. Out: the tensor, written. Of several values for one place in
memory the last counts. The write goes to a view that has each place once. PyTorch does it with a
warning, and refuses every other write.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.core.ops import gather_scatter
from tracejit.core.ops.gather_scatter import indexed_shape, together
from tracejit.core.ops.numpy_names import NAMES, renamed
from tracejit.core.ops.pointwise import convert
from tracejit.core.ops.types import bool_, int64

_EXAMPLES = {"index_put_": "tensor[indices] = tensor", "masked_fill_": "tensor[mask] = scalar",
             "index_fill_": "tensor[mask] = scalar"}  # fmt: skip


def shared(x: Any) -> list[int]:
    """Return the dimensions along which elements share memory; none for a graph's values."""
    ask = getattr(x, "_shared_dims", None)
    return [] if ask is None else ask()


def warn(name: str) -> None:
    """Warn that this op should not be used on expanded tensors."""
    warnings.warn(f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor "
                  "before performing this operation. This also applies to advanced indexing e.g. "
                  f"{_EXAMPLES[name]}", UserWarning, stacklevel=4)


def _once(x: Any, dims: Sequence[int]) -> Any:
    """Return the view of `x` that has each place in memory once."""
    for d in dims:
        x = x.narrow(d, 0, 1)
    return x


def fill(x: Any, dims: Sequence[int], mask: Any, value: Any, name: str) -> Any:
    """Do `x.masked_fill_(mask, value)`; `name` is the op that the caller used."""
    warn(name)
    mask = mask.expand(x.shape)
    for d in dims:
        mask = mask.any(d, True)
    once = _once(x, dims)
    once._assign(once.masked_fill(mask, value))
    return x


def put(x: Any, dims: Sequence[int], indexed: Sequence[int], indices: Sequence[Any], src: Any,
        accumulate: bool) -> Any:
    """Do `gather_scatter.put` in `x`; `indexed` are the dimensions that the index tensors are
    for."""
    wide = together(indices)
    shape = indexed_shape(x.shape, wide[0].shape, tuple(indexed))
    labels = indexed_shape(range(len(x.shape)), (None,) * len(wide[0].shape), tuple(indexed))
    while len(src.shape) > len(shape) and src.shape[0] == 1:
        src = src.reshape(src.shape[1:])
    src = src.expand(*shape)
    for k, d in enumerate(labels):
        if d in dims:
            src = src.sum(k, True) if accumulate else src.narrow(k, shape[k] - 1, 1)
    places = [_first(x, d, index) if d in dims else index for d, index in zip(indexed, wide)]
    once = _once(x, dims)
    once._assign(gather_scatter.put(once, indexed, places, src, accumulate))
    return x


def _first(x: Any, d: int, index: Any) -> Any:
    """Return zeros for positions along a dimension; IndexError where one is outside."""
    zeros = x.new_zeros((x.shape[d],), dtype=int64)
    return gather_scatter.index(zeros, [0], [index])


def masked_fill_(x: Any, dims: Sequence[int], mask: Any, value: Any) -> Any:
    """Do `x.masked_fill_`."""
    return fill(x, dims, mask, value, "masked_fill_")


def index_fill_(x: Any, dims: Sequence[int], dim: int, index: Any, value: Any) -> Any:
    """Do `x.index_fill_`."""
    mask = convert(x.new_zeros(x.shape, dtype=bool_).index_fill(dim, index, True), bool_)
    return fill(x, dims, mask, value, "index_fill_")


def or_shared(twin: Callable[..., Any], write: Callable[..., Any]) -> Callable[..., Any]:
    """Make an in-place op that calls `write` where elements share memory, else `twin`."""
    def call(self: Any, *arguments: Any, **keywords: Any) -> Any:
        dims = shared(self)
        if dims:
            return write(self, dims, *arguments, **renamed(keywords, NAMES))
        return twin(self, *arguments, **keywords)

    call.__name__, call.__doc__ = twin.__name__, twin.__doc__
    return call
