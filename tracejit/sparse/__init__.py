"""Sparse tensors keep few of their elements; PyTorch's `torch.sparse`, as far as graphs and
gradients of embeddings need it.

In: positions and elements. Out: `SparseTensor`s, and their products with dense matrices.
"""

from __future__ import annotations

import builtins
from typing import Any

from tracejit.core.eager.construction import as_tensor
from tracejit.core.ops.linalg import addmm as dense_addmm
from tracejit.core.ops.linalg import mm as dense_mm
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.shapes import normalize_dim
from tracejit.core.ops.types import dtype, float32, float64, int64
from tracejit.sparse import mixed_ops  # noqa: F401
from tracejit.sparse.softmax import log_softmax, softmax  # noqa: F401
from tracejit.sparse.tensor import SparseTensor


def sparse_coo_tensor(indices: Any = None, values: Any = None, size: Any = None, *,
                      dtype: dtype | None = None, device: Any = None,
                      requires_grad: bool = False, check_invariants: bool | None = None,
                      is_coalesced: bool | None = None) -> SparseTensor:  # fmt: skip
    """Make a tensor with `values` (n, ...) at the positions `indices` (s, n), and 0 elsewhere.

    Positions are those of the first s dimensions; the others are those of the values.

    size  None: as large as the positions ask for

    >>> import tracejit
    >>> tracejit.sparse_coo_tensor([[0, 1], [1, 0]], [3.0, 4.0], (2, 2)).to_dense().tolist()
    [[0.0, 3.0], [4.0, 0.0]]

    RuntimeError where numbers of positions, elements and dimensions do not fit; a position out of
    range is an error where the tensor is used. NotImplementedError for `requires_grad` (let
    `values` require it), and elements that are not numbers.
    """
    if requires_grad:
        raise NotImplementedError(
            "sparse_coo_tensor: gradients that are sparse are not supported; let values require it"
        )
    if values is None:
        # sparse_coo_tensor(size): the only positional argument is the size then.
        size = indices if size is None else size
        indices, values = [[] for _ in size], []
    at = convert(as_tensor(indices, device=device), int64)
    kept = as_tensor(values, dtype=dtype, device=device)
    if len(at.shape) != 2 or not kept.shape:
        raise NotImplementedError("sparse_coo_tensor: indices must be (s, n), and values (n, ...)")
    if at.shape[1] != kept.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {at.shape[1]}, nnz "
            f"from values: {kept.shape[0]}"
        )
    if size is None:
        size = [*(int(row.max()) + 1 if at.shape[1] else 0 for row in at), *kept.shape[1:]]
    elif len(size) != at.shape[0] + len(kept.shape) - 1:
        raise RuntimeError(
            "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = "
            f"{len(size)}, sparse_dim = {at.shape[0]}, dense_dim = {len(kept.shape) - 1}"
        )
    elif tuple(size[at.shape[0]:]) != tuple(kept.shape[1:]):
        raise RuntimeError(
            f"values has incorrect size, expected {[at.shape[1], *size[at.shape[0]:]]}, got "
            f"{list(kept.shape)}"
        )
    return SparseTensor(at, kept, size, builtins.bool(is_coalesced))


def FloatTensor(indices: Any, values: Any, size: Any = None) -> SparseTensor:
    """`sparse_coo_tensor` of float32 elements."""
    return sparse_coo_tensor(indices, values, size, dtype=float32)


def DoubleTensor(indices: Any, values: Any, size: Any = None) -> SparseTensor:
    """`sparse_coo_tensor` of float64 elements."""
    return sparse_coo_tensor(indices, values, size, dtype=float64)


def mm(mat1: Any, mat2: Any) -> Any:
    """Multiply two matrices; one of them may be sparse.

    >>> import tracejit
    >>> x = tracejit.eye(2).to_sparse() * 3
    >>> tracejit.sparse.mm(x, tracejit.ones(2, 1)).tolist()
    [[3.0], [3.0]]

    RuntimeError where sizes or dtypes do not fit.
    """
    if isinstance(mat1, SparseTensor) or isinstance(mat2, SparseTensor):
        for x in (mat1, mat2):
            normalize_dim(1, len(x.shape))
    return dense_mm(mat1, mat2)


spmm = mm


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return beta * mat + alpha * (mat1 @ mat2), mat1 sparse."""
    return dense_addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: SparseTensor) -> Any:
    """Return the sum of all elements."""
    return input.sum()
