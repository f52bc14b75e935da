"""Tensors of which few elements are kept; PyTorch's `torch.sparse`, as far as graphs need it.

In: positions and elements, or dense tensors. Out: `SparseTensor`s, which multiply dense matrices.
A sparse tensor is two tensors, positions (ndim, n) and elements (n,), and a size. It is no `Tensor`
itself: gradients go to its elements, and functions other than products and `to_dense` do not take
it.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Sequence
from typing import Any

from tracejit.eager.construction import as_tensor
from tracejit.eager.metadata import layout, sparse_coo
from tracejit.eager.size import Size
from tracejit.eager.tensor import Tensor
from tracejit.memory.devices import device
from tracejit.ops.creation import zeros
from tracejit.ops.linalg import addmm as dense_addmm
from tracejit.ops.linalg import mm as dense_mm
from tracejit.ops.operators import Operators, method
from tracejit.ops.pointwise_record import cast, convert, is_number
from tracejit.ops.record import Op
from tracejit.ops.shapes import normalize_dim
from tracejit.ops.sparse_products import sparse_product_record
from tracejit.ops.types import dtype, float32, float64, int64
from tracejit.ops.unique import unique


class SparseTensor:
    """Elements at given positions of a tensor that is 0 elsewhere.

    >>> import tracejit
    >>> x = tracejit.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    >>> x.indices().tolist(), x.values().tolist(), x.shape
    ([[0], [1]], [2.0], tracejit.Size([2, 2]))

    Where a position is there twice its elements add up; `coalesce` adds them.
    """

    is_sparse = True
    __array_priority__ = 2000

    def __init__(self, indices: Tensor, values: Tensor, size: Sequence[int], coalesced: bool):
        self.positions, self.elements = indices, values
        self.extents, self.coalesced = tuple(size), coalesced

    @staticmethod
    def dispatch(op: Op, operands: tuple, attributes: dict) -> Any:
        """Another dtype; else NotImplementedError, as ops compute with all elements."""
        if op is cast:
            return operands[0]._with(op(operands[0].elements, **attributes))
        raise NotImplementedError(
            f"{op.name}: sparse tensors are not supported here; call .to_dense() first"
        )

    def _with(self, values: Tensor) -> SparseTensor:
        return SparseTensor(self.positions, values, self.extents, self.coalesced)

    # -- what it is --------------------------------------------------------------------------------
    @property
    def shape(self) -> Size:
        return Size(self.extents)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one of its sizes."""
        return self.shape if dim is None else self.extents[normalize_dim(dim, self.ndim)]

    @property
    def ndim(self) -> int:
        return len(self.extents)

    def dim(self) -> int:
        """The number of dimensions."""
        return self.ndim

    def numel(self) -> int:
        """The number of elements, zeros included."""
        return self.shape.numel()

    def __len__(self) -> int:
        return self.extents[0]

    @property
    def dtype(self) -> dtype:
        return self.elements.dtype

    @property
    def device(self) -> device:
        return self.elements.device

    @property
    def is_cuda(self) -> bool:
        return self.elements.is_cuda

    @property
    def layout(self) -> layout:
        return sparse_coo

    @property
    def requires_grad(self) -> bool:
        return self.elements.requires_grad

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating point one."""
        return self.elements.is_floating_point()

    # -- what is in it -----------------------------------------------------------------------------
    def _nnz(self) -> int:
        return self.elements.shape[0]

    def _indices(self) -> Tensor:
        return self.positions

    def _values(self) -> Tensor:
        return self.elements

    def is_coalesced(self) -> bool:
        """Whether each position is known to be there once, in order."""
        return self.coalesced

    def _must_be_coalesced(self, what: str) -> None:
        if not self.coalesced:
            raise RuntimeError(
                f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first"
            )

    def indices(self) -> Tensor:
        """The positions (ndim, n). RuntimeError before `coalesce`."""
        self._must_be_coalesced("indices")
        return self.positions

    def values(self) -> Tensor:
        """The elements (n,). RuntimeError before `coalesce`."""
        self._must_be_coalesced("values")
        return self.elements

    def coalesce(self) -> SparseTensor:
        """Each position once, in order, with the sum of its elements."""
        if self.coalesced:
            return self
        positions, where = unique(self.positions, return_inverse=True, dim=1)
        sums = zeros(positions.shape[1], dtype=self.dtype, device=self.device)
        values = sums.index_add(0, where, self.elements)
        return SparseTensor(positions, values, self.extents, True)

    def to_dense(self, dtype: Any = None) -> Tensor:
        """All elements, zeros included."""
        values = self.elements if dtype is None else convert(self.elements, dtype)
        whole = zeros(self.extents, dtype=values.dtype, device=self.device)
        return whole.index_put(tuple(self.positions), values, accumulate=True)

    def to_sparse(self) -> SparseTensor:
        """The tensor itself."""
        return self

    def numpy(self) -> Any:
        """TypeError: there is no such array."""
        raise TypeError(
            "can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first."
        )

    # -- dtypes and devices ------------------------------------------------------------------------
    def to(self, *args: Any, **keywords: Any) -> SparseTensor:
        """Of another dtype, on another device."""
        values = self.elements.to(*args, **keywords)
        if values is self.elements:
            return self
        places = self.positions.to(values.device)
        return SparseTensor(places, values, self.extents, self.coalesced)

    def cpu(self) -> SparseTensor:
        """On the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> SparseTensor:
        """On a CUDA device."""
        return self.to("cuda" if device is None else device)

    def float(self) -> SparseTensor:
        """In float32."""
        return self.to(float32)

    def double(self) -> SparseTensor:
        """In float64."""
        return self.to(float64)

    def detach(self) -> SparseTensor:
        """Without a gradient."""
        return self._with(self.elements.detach())

    def clone(self) -> SparseTensor:
        """A copy."""
        return SparseTensor(
            self.positions.clone(), self.elements.clone(), self.extents, self.coalesced
        )

    # -- computing ---------------------------------------------------------------------------------
    def t(self) -> SparseTensor:
        """Rows and columns exchanged."""
        return SparseTensor(self.positions.flip(0), self.elements, self.extents[::-1], False)

    T = property(t)

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Two dimensions exchanged, of a matrix."""
        same = normalize_dim(dim0, self.ndim) == normalize_dim(dim1, self.ndim)
        return self if same else self.t()

    def sum(self) -> Tensor:
        """The sum of all elements."""
        return self.elements.sum()

    def sparse_product(self, other: Any) -> Any:
        """This matrix times a dense matrix or vector."""
        if len(other.shape) == 1:
            return self.sparse_product(other.unsqueeze(1)).squeeze(1)
        if len(self.extents) != 2 or len(other.shape) != 2:
            raise RuntimeError("a sparse matrix multiplies dense vectors and matrices")
        return sparse_product_record(self.positions, self.elements, other, size=self.extents)

    def dense_product(self, other: Any) -> Any:
        """A dense matrix times this one."""
        return self.t().sparse_product(other.transpose(0, 1)).transpose(0, 1)

    mm = matmul = mv = __matmul__ = sparse_product
    __rmatmul__ = dense_product

    def __mul__(self, other: Any) -> SparseTensor:
        return self._with(self.elements * other) if _is_scalar(other) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> SparseTensor:
        return self._with(self.elements / other) if _is_scalar(other) else NotImplemented

    def __neg__(self) -> SparseTensor:
        return self._with(self.elements.neg())

    def __repr__(self) -> str:
        def indented(x: Tensor, by: int) -> str:
            return re.sub(", dtype=[^,)]*", "", repr(x.detach())).replace("\n", "\n" + " " * by)

        parts = [f"size={self.extents}", f"nnz={self._nnz()}"]
        parts += [f"device='{self.device}'"] * self.is_cuda
        parts += [f"dtype={self.dtype}"] * (self.dtype not in (float32, int64))
        parts += ["layout=tracejit.sparse_coo"] + ["requires_grad=True"] * self.requires_grad
        rest = ", ".join(parts)
        return (f"tensor(indices={indented(self.positions, 15)},\n"
                f"       values={indented(self.elements, 14)},\n       {rest})")  # fmt: skip


def _is_scalar(x: Any) -> bool:
    return is_number(x) or isinstance(x, Operators) and not x.shape  # type: ignore[attr-defined]


def sparse_coo_tensor(indices: Any, values: Any = None, size: Any = None, *,
                      dtype: dtype | None = None, device: Any = None,
                      requires_grad: bool = False, check_invariants: bool | None = None,
                      is_coalesced: bool | None = None) -> SparseTensor:  # fmt: skip
    """The tensor of that size with `values` (n,) at the positions `indices` (ndim, n), else 0.

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
    if values is None and size is None:
        size, indices, values = indices, [[] for _ in indices], []
    at = convert(as_tensor(indices, device=device), int64)
    kept = as_tensor(values, dtype=dtype, device=device)
    if len(at.shape) != 2 or len(kept.shape) != 1:
        raise NotImplementedError("sparse_coo_tensor: indices must be (ndim, n), and values (n,)")
    if at.shape[1] != kept.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {at.shape[1]}, nnz "
            f"from values: {kept.shape[0]}"
        )
    if size is None:
        size = [int(row.max()) + 1 if at.shape[1] else 0 for row in at]
    elif len(size) != at.shape[0]:
        raise RuntimeError(
            "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = "
            f"{len(size)}, sparse_dim = {at.shape[0]}, dense_dim = 0"
        )
    return SparseTensor(at, kept, size, builtins.bool(is_coalesced))


@method()
def to_sparse(self: Any) -> SparseTensor:
    """The elements that are not 0, and where they are."""
    if not self.shape:
        raise NotImplementedError("to_sparse: a tensor without dimensions is not supported")
    at = self.nonzero().transpose(0, 1)
    return SparseTensor(at, self[tuple(at)], tuple(self.shape), True)


def FloatTensor(indices: Any, values: Any, size: Any = None) -> SparseTensor:
    """`sparse_coo_tensor` of float32 elements."""
    return sparse_coo_tensor(indices, values, size, dtype=float32)


def DoubleTensor(indices: Any, values: Any, size: Any = None) -> SparseTensor:
    """`sparse_coo_tensor` of float64 elements."""
    return sparse_coo_tensor(indices, values, size, dtype=float64)


def mm(mat1: Any, mat2: Any) -> Any:
    """The product of two matrices, of which one may be sparse.

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
    """beta * mat + alpha * (mat1 @ mat2), mat1 sparse."""
    return dense_addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: SparseTensor) -> Any:
    """The sum of all elements."""
    return input.sum()
