"""Sparse matrices with compressed rows or columns: CSR and CSC, as scipy and LibSVM have them.

In: positions where rows begin, columns and values of the elements (CSC: rows and columns
exchanged). Out: `CompressedTensor`s, which multiply and become dense. They are kept as they were
given and compute as `SparseTensor`s; gradients go to the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from tracejit.core.eager.construction import as_tensor
from tracejit.core.eager.metadata import sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from tracejit.core.eager.size import Size
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops import sealing as _sealing
from tracejit.core.ops.creation import arange, zeros
from tracejit.core.ops.indexing import repeat_interleave
from tracejit.core.ops.joining import cat, stack
from tracejit.core.ops.types import int64
from tracejit.sparse.tensor import SparseTensor


class CompressedTensor:
    """Elements row by row (CSR) or column by column (CSC) of a matrix that is 0 elsewhere.

    >>> import tracejit
    >>> x = tracejit.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr()
    >>> x.crow_indices().tolist(), x.col_indices().tolist(), x.values().tolist()
    ([0, 1, 2], [1, 0], [2.0, 3.0])
    """

    is_sparse, is_sparse_csr, requires_grad_of_places = False, True, False

    def __init__(self, starts: Tensor, places: Tensor, values: Tensor, size: Sequence[int],
                 layout: Any) -> None:
        self.starts, self.places, self.elements = starts, places, values
        self.shape, self.layout = Size(size), layout

    dtype = property(lambda self: self.elements.dtype)
    device = property(lambda self: self.elements.device)
    requires_grad = property(lambda self: self.elements.requires_grad)
    ndim = property(lambda self: len(self.shape))

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or one of its sizes."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    def numel(self) -> int:
        """Return the number of elements, zeros included."""
        return self.shape.numel()

    def values(self) -> Tensor:
        """Return the elements that are kept."""
        return self.elements

    def _nnz(self) -> int:
        return self.elements.shape[0]

    def crow_indices(self) -> Tensor:
        """Return the position of each row's first element. Raises RuntimeError for CSC."""
        return self._of(sparse_csr, "crow_indices", "row", self.starts)

    def col_indices(self) -> Tensor:
        """Return the column of each element. RuntimeError for CSC."""
        return self._of(sparse_csr, "col_indices", "row", self.places)

    def ccol_indices(self) -> Tensor:
        """Return the position of each column's first element. Raises RuntimeError for CSR."""
        return self._of(sparse_csc, "ccol_indices", "column", self.starts)

    def row_indices(self) -> Tensor:
        """Return the row of each element. RuntimeError for CSR."""
        return self._of(sparse_csc, "row_indices", "column", self.places)

    def _of(self, layout: Any, name: str, kind: str, found: Tensor) -> Tensor:
        if self.layout is not layout:
            other = "SparseCsc" if layout is sparse_csr else "SparseCsr"
            raise RuntimeError(f"{name} expected sparse {kind} compressed tensor layout but got "
                               f"{other}")
        return found

    def to_sparse(self) -> SparseTensor:
        """Return a `SparseTensor` of the same elements, with the position of each."""
        counts = self.starts[1:] - self.starts[:-1]
        groups = repeat_interleave(arange(counts.shape[0], dtype=int64), counts.to(int64))
        places = self.places.to(int64)
        pair = (groups, places) if self.layout is sparse_csr else (places, groups)
        return SparseTensor(stack(pair), self.elements, tuple(self.shape), False)

    def to_dense(self) -> Tensor:
        """Return the matrix with its zeros."""
        return self.to_sparse().to_dense()

    def to_sparse_csr(self) -> CompressedTensor:
        """Return the matrix compressed by rows."""
        return self if self.layout is sparse_csr else compressed(self.to_sparse(), sparse_csr)

    def to_sparse_csc(self) -> CompressedTensor:
        """Return the matrix compressed by columns."""
        return self if self.layout is sparse_csc else compressed(self.to_sparse(), sparse_csc)

    def t(self) -> CompressedTensor:
        """Exchange rows and columns: CSR becomes CSC, over the same memory."""
        layout = sparse_csc if self.layout is sparse_csr else sparse_csr
        return CompressedTensor(self.starts, self.places, self.elements, self.shape[::-1], layout)

    mT = T = property(t)

    def transpose(self, dim0: int, dim1: int) -> CompressedTensor:
        """Exchange two dimensions."""
        # Modulo 2, as dimensions may be negative.
        return self if dim0 % 2 == dim1 % 2 else self.t()

    def detach(self) -> CompressedTensor:
        """Return the matrix without a gradient."""
        return self._with(self.elements.detach())

    def clone(self) -> CompressedTensor:
        """Return a copy."""
        return CompressedTensor(self.starts.clone(), self.places.clone(), self.elements.clone(),
                                self.shape, self.layout)

    def to(self, *arguments: Any, **named: Any) -> CompressedTensor:
        """Return the matrix in another dtype, or on another device."""
        return self._with(self.elements.to(*arguments, **named))

    def requires_grad_(self, requires_grad: bool = True) -> CompressedTensor:
        """Make the values collect gradients, or stop it; return the tensor."""
        self.elements.requires_grad_(requires_grad)
        return self

    def _with(self, values: Tensor) -> CompressedTensor:
        return CompressedTensor(self.starts, self.places, values, self.shape, self.layout)

    def sum(self) -> Tensor:
        """Return the sum of all elements."""
        return self.elements.sum()

    def sparse_product(self, other: Any) -> Any:
        """Multiply this matrix by a dense vector or matrix."""
        return self.to_sparse().sparse_product(other)

    def dense_product(self, other: Any) -> Any:
        """Multiply a dense matrix by this one."""
        return self.to_sparse().dense_product(other)

    matmul = mm = __matmul__ = mv = sparse_product
    __rmatmul__ = dense_product

    def __mul__(self, other: Any) -> CompressedTensor:
        return self._with(self.elements * other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> CompressedTensor:
        return self._with(self.elements / other)

    def __neg__(self) -> CompressedTensor:
        elements: Any = self.elements
        return self._with(-elements)

    def __repr__(self) -> str:
        names = ("crow_indices", "col_indices") if self.layout is sparse_csr else (
            "ccol_indices", "row_indices")
        return (f"tensor({names[0]}={self.starts!r},\n       {names[1]}={self.places!r},\n"
                f"       values={self.elements!r}, size={tuple(self.shape)}, nnz={self._nnz()},\n"
                f"       layout={self.layout})")


def compressed(x: SparseTensor, layout: Any) -> CompressedTensor:
    """Compress a sparse matrix by rows or by columns."""
    if len(x.shape) != 2:
        raise RuntimeError("only matrices are compressed by rows or columns, got "
                           f"{len(x.shape)} dimensions")
    x = x.coalesce()
    rows, columns = x.indices()[0], x.indices()[1]
    values, count = x.values(), x.shape[0]
    if layout is sparse_csc:
        # `coalesce` orders by rows; a stable sort keeps that order within each column.
        order = columns.argsort(stable=True)
        rows, columns, values, count = columns[order], rows[order], values[order], x.shape[1]
    counts = zeros(count, dtype=int64).index_add(0, rows, zeros(rows.shape[0], dtype=int64) + 1)
    starts = cat((zeros(1, dtype=int64), counts.cumsum(0)))
    return CompressedTensor(starts, columns, values, tuple(x.shape), layout)


def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Any,
                             size: Any = None, *, layout: Any = None, dtype: Any = None,
                             device: Any = None, pin_memory: bool = False,
                             requires_grad: bool = False,
                             check_invariants: bool | None = None) -> CompressedTensor:
    """Make a CSR or CSC matrix from the starts of its rows (columns), the other positions, and
    values.

    RuntimeError if the numbers of positions do not fit; NotImplementedError for blocks.

    >>> import tracejit
    >>> sparse_compressed_tensor([0, 1, 2], [1, 0], [1.0, 2.0], (2, 2),
    ...                          layout=tracejit.sparse_csr).to_dense()
    tensor([[0., 1.],
            [2., 0.]])
    """
    if layout is sparse_bsr or layout is sparse_bsc:
        raise NotImplementedError(f"sparse_compressed_tensor(): {layout}: blocks are not kept "
                                  "here; use sparse_csr")
    if layout is None:
        raise RuntimeError("sparse_compressed_tensor_unsafe(): expected layout to be set")
    starts, places = as_tensor(compressed_indices), as_tensor(plain_indices)
    elements = as_tensor(values, dtype=dtype, device=device)
    count = starts.shape[0] - 1
    if size is None:
        other = int(places.max()) + 1 if places.numel() else 0
        size = (count, other) if layout is sparse_csr else (other, count)
    # Checked here, as errors of later products would not name the cause.
    main = size[0] if layout is sparse_csr else size[1]
    if count != main or int(starts[0]) or int(starts[-1]) != places.shape[0]:
        raise RuntimeError(f"compressed positions of {starts.shape[0]} numbers from "
                           f"{int(starts[0])} to {int(starts[-1])} do not fit {main} rows or "
                           f"columns and {places.shape[0]} elements")
    if places.shape[0] != elements.shape[0]:
        raise RuntimeError(f"{places.shape[0]} positions and {elements.shape[0]} values")
    if requires_grad:
        elements = elements.detach().requires_grad_()
    return CompressedTensor(starts, places, elements, tuple(size), layout)


def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None,
                      **named: Any) -> CompressedTensor:
    """Make a `sparse_compressed_tensor` by rows: crow_indices (rows + 1,), col_indices (n,), values
    (n,).

    >>> import tracejit
    >>> x = tracejit.sparse_csr_tensor([0, 1, 2], [1, 0], [3.0, 4.0], (2, 2))
    >>> x.to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    return sparse_compressed_tensor(crow_indices, col_indices, values, size,
                                    layout=named.pop("layout", None) or sparse_csr, **named)


def sparse_csc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = None,
                      **named: Any) -> CompressedTensor:
    """Make a `sparse_compressed_tensor` by columns: ccol_indices (columns + 1,), row_indices (n,),
    values (n,).

    >>> import tracejit
    >>> x = tracejit.sparse_csc_tensor([0, 1, 2], [1, 0], [3.0, 4.0], (2, 2))
    >>> x.to_dense()
    tensor([[0., 4.],
            [3., 0.]])
    """
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size,
                                    layout=named.pop("layout", None) or sparse_csc, **named)


def sparse_bsr_tensor(*arguments: Any, **named: Any) -> NoReturn:
    """Raise NotImplementedError: blocks are not kept here."""
    raise NotImplementedError("sparse_bsr_tensor(): blocks are not kept here; use "
                              "sparse_csr_tensor")


def sparse_bsc_tensor(*arguments: Any, **named: Any) -> NoReturn:
    """Raise NotImplementedError: blocks are not kept here."""
    raise NotImplementedError("sparse_bsc_tensor(): blocks are not kept here; use "
                              "sparse_csc_tensor")

_sealing.seal_all(globals())
