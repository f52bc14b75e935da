"""Checks of the arguments of `index_add`, `index_copy`, `index_fill`, `gather` and `scatter`, in
PyTorch's order.

In: the arguments. Out: PyTorch's errors; the index as a vector, and the source in the rank that the
records take: a tensor without dimensions counts as a vector of one element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.ops.pointwise import convert
from tracejit.core.ops.shapes import equal, hint, normalize_dim, same_structure
from tracejit.core.ops.types import COMPLEX, SCALAR_NAMES, int32, int64

_SLICES = "source tensor shape must match self tensor shape, excluding the specified dimension. "


def _shown(shape: Sequence[Any]) -> str:
    return str([hint(n) for n in shape])


def _name(x: Any) -> str:
    return SCALAR_NAMES[x.dtype.name]


def _without(shape: Sequence[Any], dim: int) -> tuple:
    return (*shape[:dim], *shape[dim + 1:])


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(map(equal, one, other))


def of_index_add(input: Any, dim: int, index: Any, source: Any) -> tuple[Any, Any]:
    """Return the index as a vector of int64, and the source with at least one dimension."""
    k = normalize_dim(dim, len(input.shape))
    if index.dtype not in (int32, int64):
        raise RuntimeError("index_add_(): Expected dtype int32/int64 for index but got: "
                           f"{_name(index)}")
    if len(index.shape) > 1:
        raise IndexError("index_add_(): Index is supposed to be a vector, but got dim: "
                         f"{len(index.shape)} with type: {_name(index)} and size: "
                         f"{_shown(index.shape)}")
    if source.dtype is not input.dtype:
        raise RuntimeError(f"index_add_(): self ({_name(input)}) and source ({_name(source)}) must "
                           "have the same scalar type")
    if k and k >= len(source.shape):
        raise RuntimeError(f"index_add_(): Indexing dim {k} is out of bounds of the source tensor "
                           f"with dim {len(source.shape)}")
    places = convert(index, int64).reshape(-1)
    if not source.shape:
        if not equal(places.shape[0], 1):
            raise IndexError(f"Dimension specified as {k} but tensor has no dimensions")
    elif not equal(places.shape[0], source.shape[k]):
        raise RuntimeError(f"index_add_(): Number of indices ({hint(places.shape[0])}) should be "
                           f"equal to source.size(dim): ({hint(source.shape[k])}), for dim: {k}")
    same = not input.shape and not source.shape
    if input.shape and source.shape:
        same = _same(_without(input.shape, k), _without(source.shape, k))
    if not same:
        raise RuntimeError(f"{_SLICES}Got self.shape = {_shown(input.shape)} source.shape = "
                           f"{_shown(source.shape)}")
    return places, source if source.shape else source.reshape(1)


def of_index_copy(input: Any, dim: int, index: Any, source: Any) -> tuple[Any, Any]:
    """Return the index as a vector, and the source with the input's number of dimensions, at least
    one."""
    k = normalize_dim(dim, len(input.shape))
    if len(index.shape) > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got "
                         f"{len(index.shape)})")
    count = index.shape[0] if index.shape else 1
    if not source.shape and not equal(count, 1):
        raise IndexError("index_copy_(): When source is scalar, index should have one element (got "
                         f"{hint(count)})")
    if source.shape and input.shape and len(source.shape) != len(input.shape):
        raise IndexError("index_copy_(): When source and destination are not scalars, their "
                         f"dimensionality must match. Source dimensionality ({len(source.shape)}), "
                         f"destination dimensionality ({len(input.shape)})")
    if index.dtype is not int64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got "
                           f"{_name(index)}")
    if source.dtype is not input.dtype:
        raise RuntimeError("index_copy_(): self and source expected to have the same dtype, but got"
                           f" (self) {_name(input)} and (source) {_name(source)}")
    own, given = (_without(x.shape, k) if x.shape else () for x in (input, source))
    if not _same(own, given):
        raise RuntimeError("index_copy_(): Source/destination tensor must have same slice shapes. "
                           f"Destination slice shape: {' '.join(str(hint(n)) for n in own)} at "
                           f"dimension {k} and source slice shape: "
                           f"{' '.join(str(hint(n)) for n in given)} at dimension 0.")
    if source.shape and not equal(count, source.shape[k]):
        raise IndexError(f"index_copy_(): Number of indices ({hint(count)}) should be equal to "
                         f"source.size(dim) ({hint(source.shape[k])})")
    if not source.shape:
        source = source.reshape((1,) * max(len(input.shape), 1))
    return index.reshape(-1), source


def of_index_fill(input: Any, dim: int, index: Any, value: Any) -> tuple[int, Any]:
    """Return the dimension counted from 0, and the index as a vector."""
    shape = getattr(value, "shape", ())
    if shape:
        raise RuntimeError("index_fill_ only supports a 0-dimensional value tensor, but got tensor "
                           f"with {len(shape)} dimension(s).")
    if index.dtype is not int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    kind = getattr(value, "dtype", None)
    is_complex = isinstance(value, complex) if kind is None else kind.category == COMPLEX
    if is_complex and input.dtype.category != COMPLEX:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not "
                           "supported")
    k = normalize_dim(dim, len(input.shape))
    if len(index.shape) > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    return k, index.reshape(-1)


def _larger(one: Any, other: Any) -> bool:
    return not same_structure(one, other) and one > other


def _is_empty(x: Any) -> bool:
    return any(equal(n, 0) for n in x.shape)


def _vector(x: Any) -> Any:
    return x if x.shape else x.reshape(1)


def _nothing(x: Any, rank: int) -> Any:
    return x.reshape(-1).narrow(0, 0, 0).reshape((0,) * rank)


def of_gather(input: Any, dim: int, index: Any, name: str) -> tuple[Any, Any, int]:
    """Return input and index with at least one dimension, and the dimension counted from 0."""
    if index.dtype not in (int32, int64) and not _is_empty(index):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    k = normalize_dim(dim, len(input.shape))
    data, places = _vector(input), convert(_vector(index), int64)
    if len(data.shape) != len(places.shape):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for d, (n, size) in enumerate(zip(places.shape, data.shape)):
        if d != k and _larger(n, size):
            raise RuntimeError(f"Size does not match at dimension {d} expected index "
                               f"{_shown(index.shape)} to be no larger than self "
                               f"{_shown(input.shape)} apart from dimension {k}")
    return data, places, k


def of_scatter(input: Any, dim: int, index: Any, src: Any,
               name: str) -> tuple[Any, Any, Any, int]:
    """Return input, index, source and the dimension counted from 0.

    The three have one rank, and the source is as large as the index. The shapes of an index without
    elements and of its source are not checked.
    """
    k = normalize_dim(dim, len(input.shape))
    if index.dtype not in (int32, int64) and not _is_empty(index):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if src.dtype is not input.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    data, places, values = _vector(input), convert(_vector(index), int64), _vector(src)
    rank = len(data.shape)
    own = [_larger(n, size) for d, (n, size) in enumerate(zip(places.shape, data.shape)) if d != k]
    given = [_larger(n, size) for n, size in zip(places.shape, values.shape)]
    if len(places.shape) == len(values.shape) == rank and not any(own + given):
        for d, (n, size) in enumerate(zip(places.shape, values.shape)):
            if not same_structure(n, size):
                values = values.narrow(d, 0, n)
        return data, places, values, k
    if _is_empty(index):
        return data, _nothing(places, rank), _nothing(values, rank), k
    if len(places.shape) != rank:
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    if src.shape and len(src.shape) < rank and not any(own + given):
        normalize_dim(len(src.shape), len(src.shape))
    if len(values.shape) != rank:
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    raise RuntimeError(f"Expected index {_shown(index.shape)} to be no larger than self "
                       f"{_shown(input.shape)} apart from dimension {k} and to be no larger size "
                       f"than src {_shown(src.shape)}")
