"""Sparse matrices times dense ones.

In: where the elements are (2, n), the elements (n,), a dense matrix. Out: a dense matrix. Called by
`tracejit/sparse/`. Programs call SciPy, or CuPy: they add the products of an element and a row one
after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.core.ops.pointwise_record import device_of
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import hint, same
from tracejit.core.ops.types import SCALAR_NAMES, TensorType


def _type(indices: Any, values: Any, dense: Any, size: tuple) -> TensorType:
    n, m = hint(size[1]), hint(dense.shape[0])
    same(size[1], dense.shape[0], f"addmm: Argument #3 (dense): Expected dim 0 size {n}, got {m}")
    if values.dtype is not dense.dtype:
        wanted, found = (SCALAR_NAMES[x.dtype.name] for x in (values, dense))
        raise RuntimeError(f"expected scalar type {wanted} but found {found}")
    return TensorType(dense.dtype, (size[0], dense.shape[1]), device_of((values, dense)))


def must_lie_within(indices: Any, size: tuple) -> None:
    """Raise RuntimeError for a position that a tensor of that size does not have."""
    for dim, (places, extent) in enumerate(zip(indices, size)):
        if not places.size:
            continue
        for found in (int(places.min()), int(places.max())):
            if found < 0:
                raise RuntimeError(f"found negative index {found} for dim {dim}")
            if found >= extent:
                raise RuntimeError(
                    f"size is inconsistent with indices: for dim {dim}, size is {extent} but found "
                    f"index {found}"
                )


def added_up(indices: Any, values: Any, size: tuple) -> tuple[Any, Any]:
    """Return arrays of positions, each once and in order, and of the sums of the values there."""
    if not len(values):
        return indices, values
    flat = np.ravel_multi_index(tuple(indices), size[:len(indices)])
    order = np.argsort(flat, kind="stable")
    flat = flat[order]
    first = np.flatnonzero(np.append(True, flat[1:] != flat[:-1]))
    return indices[:, order[first]], np.add.reduceat(values[order], first)


def _array(xp: Any, indices: Any, values: Any, dense: Any, size: tuple) -> Any:
    must_lie_within(indices, size)
    if xp is np:
        from scipy.sparse import coo_matrix
    else:
        from cupyx.scipy.sparse import coo_matrix
    half = dense.dtype.itemsize == 2 and dense.dtype.kind not in "iu"
    kept, whole = (x.astype(np.float32) if half else x for x in (values, dense))
    result = coo_matrix((kept, (indices[0], indices[1])), shape=size) @ whole
    return result.astype(dense.dtype, copy=False)


def _of_values(grad: Any, indices: Any, dense: Any) -> Any:
    rows, columns = indices.select(0, 0), indices.select(0, 1)
    return (grad.index_select(0, rows) * dense.index_select(0, columns)).sum(-1)


def _of_dense(grad: Any, indices: Any, values: Any, size: tuple) -> Any:
    return sparse_product_record(indices.flip(0), values, grad, size=size[::-1])


sparse_product_record: Op = Op(
    "sparse_product", "extern", ("indices", "values", "dense"), infer=_type, eager=_array,
    rules={"values": _of_values, "dense": _of_dense}, may_fail=True, node_name="MmBackward0",
)  # fmt: skip
