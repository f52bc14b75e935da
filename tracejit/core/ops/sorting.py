"""Order: sort, argsort, topk.

In: a tensor and a dimension. Out: values in order and where they were. Called by users. On the CPU
a library kernel sorts most dtypes, else the array library does. The gradient of the values is
scattered back to where they came from.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from tracejit.core.ops.creation import zeros_of
from tracejit.core.ops.gather_scatter import scatter_record
from tracejit.core.ops.operators import method
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import as_size, hint, normalize_dim, same_structure, symbolic
from tracejit.core.ops.types import COMPLEX, TensorType, bfloat16, bool_, float16, int64

_HALVES = (float16.numpy, bfloat16.numpy)
SortResult = namedtuple("sort", ["values", "indices"])  # type: ignore[name-match]
TopkResult = namedtuple("topk", ["values", "indices"])  # type: ignore[name-match]


def _types(input: Any, dim: int, descending: bool) -> tuple[TensorType, TensorType]:
    shape = tuple(input.shape)
    return TensorType(input.dtype, shape, input.device), TensorType(int64, shape, input.device)


def _eager(xp: Any, x: Any, dim: int, descending: bool) -> tuple[Any, Any]:
    """Sort: equal elements keep their order; nan counts as the largest."""
    keys = x.astype(np.float32) if x.dtype in _HALVES else x
    if descending:  # reversed twice, so that equal elements stay in order
        order = xp.flip(xp.argsort(xp.flip(keys, dim), axis=dim, kind="stable"), dim)
        order = x.shape[dim] - 1 - order
    else:
        order = xp.argsort(keys, axis=dim, kind="stable")
    return xp.take_along_axis(x, order, dim), order


def _rule(grad: Any, indices: Any, input_type: TensorType, dim: int) -> Any:
    base = zeros_of(grad, input_type._replace(dtype=grad.dtype))
    return scatter_record(base, indices, grad, dim=dim)


sort_record: Op = Op(
    "sort", "extern", ("input",), outputs=("values", "indices"),
    infer=_types, eager=_eager, library=True, rules={"input": _rule},
)  # fmt: skip


def _first_eager(
    xp: Any, x: Any, count: Any, dim: int, largest: bool
) -> tuple[Any, Any]:
    first = (*(slice(None),) * dim, slice(count))
    values, indices = _eager(xp, x, dim, largest)
    return values[first], indices[first]


def _first_types(input: Any, count: Any, dim: int, largest: bool) -> tuple[TensorType, TensorType]:
    shape = (*input.shape[:dim], count, *input.shape[dim + 1 :])
    return TensorType(input.dtype, shape, input.device), TensorType(int64, shape, input.device)


topk_record: Op = Op(
    "topk", "extern", ("input",), outputs=("values", "indices"),
    infer=_first_types, eager=_first_eager, library=True, rules={"input": _rule},
)  # fmt: skip


def _must_order(input: Any, name: str) -> None:
    if input.dtype.category == COMPLEX:
        raise RuntimeError(f" {name} does not support complex dtypes on CPU")


def _sorted(input: Any, dim: int, descending: bool) -> tuple[Any, Any]:
    _must_order(input, "Sort")
    k = normalize_dim(dim, len(input.shape))
    if not input.shape:
        values, indices = sort_record(input.reshape(1), dim=0, descending=bool(descending))
        return values.reshape(()), indices.reshape(())
    return sort_record(input, dim=k, descending=bool(descending))


@method()
def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Return (values, indices) sorted along `dim`; equal elements keep their order, nan comes last.

    >>> import tracejit
    >>> values, indices = tracejit.tensor([3.0, 1.0, 2.0]).sort()
    >>> values.tolist(), indices.tolist()
    ([1.0, 2.0, 3.0], [1, 2, 0])
    """
    return SortResult(*_sorted(input, dim, descending))


@method()
def msort(input: Any) -> Any:
    """Return the values of `sort` along dimension 0, in the same shape.

    >>> import tracejit
    >>> tracejit.msort(tracejit.tensor([3, 1, 2]))
    tensor([1, 2, 3])
    """
    return _sorted(input, 0, False)[0]


@method()
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Return the positions that sort `input` along `dim`.

    >>> import tracejit
    >>> tracejit.tensor([3.0, 1.0, 2.0]).argsort(descending=True).tolist()
    [0, 2, 1]
    """
    return _sorted(input, dim, descending)[1]


@method()
def topk(input: Any, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """Return (values, indices) of the `k` largest (or smallest) elements along `dim`, in order.

    RuntimeError where the dimension has fewer.

    >>> import tracejit
    >>> tracejit.tensor([3.0, 1.0, 2.0]).topk(2).values.tolist()
    [3.0, 2.0]
    """
    count = symbolic(as_size(k))
    axis = normalize_dim(dim, len(input.shape))
    size = input.shape[axis] if input.shape else 1
    if not same_structure(count, size) and (count < 0 or count > size):
        raise RuntimeError(f"selected index k out of range: k={hint(count)}, size {hint(size)}")
    if input.dtype is bool_:
        raise RuntimeError("topk does not support bool dtypes on CPU")
    if not input.shape:
        return TopkResult(*_sorted(input, dim, largest))
    _must_order(input, "topk")
    return TopkResult(*topk_record(input, count=count, dim=axis, largest=bool(largest)))
