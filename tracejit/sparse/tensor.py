"""Tensors that keep few elements, or few rows: `tracejit.sparse` makes them, and gradients of
embeddings are some.

In: positions and elements. Out: `SparseTensor`s, which multiply dense matrices and add to dense
tensors. A sparse tensor has two tensors, positions (s, n) and elements (n, ...). Its size begins
with the s sparse dimensions; the dense ones of the elements follow. It is no `Tensor`: gradients go
to its elements, and only the functions of this folder take it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tracejit.core.eager.metadata import layout, sparse_coo
from tracejit.core.eager.recording import active
from tracejit.core.eager.size import Size
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.type_names import tensor_type_name
from tracejit.core.eager.writing import bump_version, check_writable, writable_array
from tracejit.core.memory.devices import device
from tracejit.core.ops import pointwise
from tracejit.core.ops.creation import zeros
from tracejit.core.ops.joining import stack
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.shapes import normalize_dim
from tracejit.core.ops.sparse_products import added_up, must_lie_within, sparse_product_record
from tracejit.core.ops.types import dtype, float16, float32, float64, int64, promote_types
from tracejit.core.ops.unique import unique


class SparseTensor:
    """Elements, or rows, at given positions of a tensor that is 0 elsewhere.

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

    def parts(self) -> tuple:
        """Return positions, elements, size, and True if it is coalesced."""
        return self.positions, self.elements, self.extents, self.coalesced

    def _with(self, values: Tensor) -> SparseTensor:
        return SparseTensor(self.positions, values, self.extents, self.coalesced)

    def _become(self, other: SparseTensor) -> SparseTensor:
        """Take the contents of another tensor, in this one's dtype, as in-place methods do."""
        if self.dtype is not other.dtype:
            other = other.to(self.dtype)
        self.positions, self.elements = other.positions, other.elements
        self.extents, self.coalesced = other.extents, other.coalesced
        return self

    # -- what it is --------------------------------------------------------------------------------
    @property
    def shape(self) -> Size:
        return Size(self.extents)

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or one of its sizes."""
        return self.shape if dim is None else self.extents[normalize_dim(dim, self.ndim)]

    @property
    def ndim(self) -> int:
        return len(self.extents)

    def dim(self) -> int:
        """Return the number of dimensions."""
        return self.ndim

    ndimension = dim

    def sparse_dim(self) -> int:
        """Return the number of dimensions that have positions: the first ones."""
        return int(self.positions.shape[0])

    def dense_dim(self) -> int:
        """Return the number of dimensions that are kept whole: the last ones."""
        return len(self.elements.shape) - 1

    def numel(self) -> int:
        """Return the number of elements, zeros included."""
        return self.shape.numel()

    nelement = numel

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

    def type(self) -> str:
        """Return the name of the tensor's type, as in "tracejit.sparse.FloatTensor"."""
        name = tensor_type_name(self.dtype, self.device)
        return ".sparse.".join(name.rsplit(".", 1))

    @property
    def requires_grad(self) -> bool:
        return self.elements.requires_grad

    @property
    def grad_fn(self) -> Any:
        return self.elements.grad_fn

    @property
    def is_leaf(self) -> bool:
        return self.elements.is_leaf

    def is_complex(self) -> bool:
        """Return True for a complex dtype."""
        return self.elements.is_complex()

    def is_floating_point(self) -> bool:
        """Return True for a floating point dtype."""
        return self.elements.is_floating_point()

    # -- what is in it -----------------------------------------------------------------------------
    def _nnz(self) -> int:
        return self.elements.shape[0]

    def _indices(self) -> Tensor:
        return self.positions

    def _values(self) -> Tensor:
        return self.elements

    def is_coalesced(self) -> bool:
        """Return True if each position is known to be there once, in order."""
        return self.coalesced

    def _must_be_coalesced(self, what: str) -> None:
        if not self.coalesced:
            raise RuntimeError(
                f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first"
            )

    def indices(self) -> Tensor:
        """Return the positions (sparse_dim, n). RuntimeError before `coalesce`."""
        self._must_be_coalesced("indices")
        return self.positions

    def values(self) -> Tensor:
        """Return the elements (n, ...). RuntimeError before `coalesce`."""
        self._must_be_coalesced("values")
        return self.elements

    def coalesce(self) -> SparseTensor:
        """Return a tensor with each position once, in order, with the sum of its elements."""
        if self.coalesced:
            return self
        which, where = unique(self.flat_positions(), return_inverse=True)
        sums = zeros((which.shape[0], *self.elements.shape[1:]), dtype=self.dtype,
                     device=self.device)
        values = sums.index_add(0, where, self.elements)
        rows = []
        # Take the flat positions apart again, from the last dimension on.
        for extent in reversed(self.extents[:self.sparse_dim()]):
            rows.append(which % extent)
            which = which // extent
        return SparseTensor(stack(rows[::-1]), values, self.extents, True)

    def flat_positions(self) -> Tensor:
        """Return the positions as one number each (n,)."""
        flat = zeros((), dtype=int64, device=self.device)
        for row, extent in zip(self.positions, self.extents):
            flat = flat * extent + row
        return flat

    def to_dense(self, dtype: Any = None) -> Tensor:
        """Return all elements, zeros included."""
        values = self.elements if dtype is None else convert(self.elements, dtype)
        whole = zeros(self.extents, dtype=values.dtype, device=self.device)
        return whole.index_put(tuple(self.positions), values, accumulate=True)

    def to_sparse(self) -> SparseTensor:
        """Return the tensor itself."""
        return self

    def to_sparse_csr(self) -> Any:
        """Return the matrix compressed by rows."""
        from tracejit.sparse.compressed import compressed, sparse_csr

        return compressed(self, sparse_csr)

    def to_sparse_csc(self) -> Any:
        """Return the matrix compressed by columns."""
        from tracejit.sparse.compressed import compressed, sparse_csc

        return compressed(self, sparse_csc)

    def sparse_mask(self, mask: SparseTensor) -> SparseTensor:
        """Return the elements at the positions of another sparse tensor."""
        return self.to_dense().sparse_mask(mask)

    def __getitem__(self, key: Any) -> Any:
        """Return the dense elements at `key`."""
        return self.to_dense()[key]

    def numpy(self) -> Any:
        """Raise TypeError: there is no such array."""
        raise TypeError(
            "can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first."
        )

    # -- dtypes and devices ------------------------------------------------------------------------
    def to(self, *args: Any, **keywords: Any) -> SparseTensor:
        """Return the tensor in another dtype, or on another device."""
        values = self.elements.to(*args, **keywords)
        if values is self.elements:
            return self
        places = self.positions.to(values.device)
        return SparseTensor(places, values, self.extents, self.coalesced)

    def cpu(self) -> SparseTensor:
        """Return the tensor on the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> SparseTensor:
        """Return the tensor on a CUDA device."""
        return self.to("cuda" if device is None else device)

    def float(self) -> SparseTensor:
        """Return the tensor in float32."""
        return self.to(float32)

    def double(self) -> SparseTensor:
        """Return the tensor in float64."""
        return self.to(float64)

    def half(self) -> SparseTensor:
        """Return the tensor in float16."""
        return self.to(float16)

    def detach(self) -> SparseTensor:
        """Return the tensor without a gradient."""
        return self._with(self.elements.detach())

    @property
    def data(self) -> SparseTensor:
        return self.detach()

    def detach_(self) -> SparseTensor:
        """Detach the tensor in place, and return it."""
        return self._become(self.detach())

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Make the elements collect gradients, or stop it; return the tensor."""
        self.elements.requires_grad_(requires_grad)
        return self

    def clone(self) -> SparseTensor:
        """Return a copy."""
        return SparseTensor(
            self.positions.clone(), self.elements.clone(), self.extents, self.coalesced
        )

    # -- computing ---------------------------------------------------------------------------------
    def t(self) -> SparseTensor:
        """Exchange rows and columns."""
        if self.sparse_dim() > 2 or self.dense_dim():
            raise RuntimeError("t() expects a tensor with <= 2 sparse and 0 dense dimensions, but "
                               f"got {self.sparse_dim()} sparse and {self.dense_dim()} dense "
                               "dimensions")
        return SparseTensor(self.positions.flip(0), self.elements, self.extents[::-1], False)

    T = property(t)

    @property
    def mT(self) -> SparseTensor:
        """Matrix with rows and columns exchanged, its last two dimensions."""
        if self.ndim < 2:
            raise RuntimeError("tensor.mT is only supported on matrices or batches of matrices. "
                               f"Got {self.ndim}-D tensor.")
        return self.transpose(-2, -1)

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Exchange two dimensions, of a matrix or among the sparse ones."""
        a, b = normalize_dim(dim0, self.ndim), normalize_dim(dim1, self.ndim)
        if a == b:
            return self
        count = self.sparse_dim()
        # `t` refuses what has more sparse dimensions, or dense ones.
        if count <= 2 or max(a, b) >= count:
            return self.t()
        order = list(range(count))
        order[a], order[b] = b, a
        sizes = (*[self.extents[d] for d in order], *self.extents[count:])
        return SparseTensor(self.positions[order], self.elements, sizes, False)

    def sum(self) -> Tensor:
        """Return the sum of all elements."""
        return self.elements.sum()

    def norm(self, p: Any = 2) -> Tensor:
        """Return the norm of all elements."""
        return self.coalesce().elements.norm(p)

    def sparse_product(self, other: Any) -> Any:
        """Multiply this matrix by a dense matrix or vector."""
        if len(other.shape) == 1:
            return self.sparse_product(other.unsqueeze(1)).squeeze(1)
        if self.sparse_dim() != 2 or self.dense_dim() or len(other.shape) != 2:
            raise RuntimeError("a sparse matrix multiplies dense vectors and matrices")
        return sparse_product_record(self.positions, self.elements, other, size=self.extents)

    def dense_product(self, other: Any) -> Any:
        """Multiply a dense matrix by this one."""
        return self.t().sparse_product(other.transpose(0, 1)).transpose(0, 1)

    mm = matmul = mv = __matmul__ = sparse_product
    __rmatmul__ = dense_product

    def add(self, other: Any, *, alpha: Any = 1) -> SparseTensor:
        """Add `alpha` times another sparse tensor."""
        return pointwise.add(self, other, alpha=alpha)

    def sub(self, other: Any, *, alpha: Any = 1) -> SparseTensor:
        """Subtract `alpha` times another sparse tensor."""
        return pointwise.sub(self, other, alpha=alpha)

    def mul(self, other: Any) -> SparseTensor:
        """Multiply elements by a number, or by those that a dense tensor has in their places."""
        return pointwise.mul(self, other)

    def div(self, other: Any) -> SparseTensor:
        """Divide elements by a number."""
        return pointwise.div(self, other)

    def neg(self) -> SparseTensor:
        """Return the negative elements."""
        return pointwise.neg(self)

    def pow(self, exponent: Any) -> SparseTensor:
        """Raise elements to the power of a positive number."""
        return pointwise.pow(self, exponent)

    def abs(self) -> SparseTensor:
        """Return the absolute values of the elements."""
        return pointwise.abs(self)

    def sqrt(self) -> SparseTensor:
        """Return the square roots of the elements."""
        return pointwise.sqrt(self)

    __add__, __sub__, __mul__, __rmul__ = add, sub, mul, mul
    __truediv__, __neg__, __pow__, __abs__ = div, neg, pow, abs

    def __radd__(self, other: Any) -> Any:
        return pointwise.add(other, self)

    def __rsub__(self, other: Any) -> Any:
        return pointwise.sub(other, self)

    def add_(self, other: Any, *, alpha: Any = 1) -> SparseTensor:
        """Compute `add` in place."""
        return self._become(self.add(other, alpha=alpha))

    def sub_(self, other: Any, *, alpha: Any = 1) -> SparseTensor:
        """Compute `sub` in place."""
        return self._become(self.sub(other, alpha=alpha))

    def mul_(self, other: Any) -> SparseTensor:
        """Compute `mul` in place."""
        return self._become(self.mul(other))

    def div_(self, other: Any) -> SparseTensor:
        """Compute `div` in place."""
        return self._become(self.div(other))

    def neg_(self) -> SparseTensor:
        """Compute `neg` in place."""
        return self._become(self.neg())

    def zero_(self) -> SparseTensor:
        """Drop all elements."""
        # Views of no elements, so that dtype, device and history stay.
        none = self.positions.narrow(1, 0, 0), self.elements.narrow(0, 0, 0)
        return self._become(SparseTensor(*none, self.extents, True))

    __iadd__, __isub__, __imul__, __itruediv__ = add_, sub_, mul_, div_

    def add_into(self, dense: Any) -> Any:
        """Add to a dense tensor in place; touches only the positions that have elements."""
        self._must_fit(dense)
        check_writable(dense)
        on_tape = active.grad_enabled and (dense.requires_grad or self.requires_grad)
        # Only NumPy on the CPU writes single elements; the tape and graphs need an op.
        if on_tape or active.tracer is not None or dense.device.type != "cpu":
            return dense._assign(self.added_to(dense))
        places, rows = self.positions.array, convert(self.elements.detach(), dense.dtype).array
        must_lie_within(places, self.extents)
        if not self.coalesced:
            # `+=` with an index that is there twice adds only once.
            places, rows = added_up(places, rows, self.extents)
        writable_array(dense)[tuple(places)] += rows
        bump_version(dense)
        return dense

    def added_to(self, dense: Any) -> Any:
        """Return the dense sum with a dense tensor."""
        self._must_fit(dense)
        kind = promote_types(dense.dtype, self.dtype)
        values = convert(self.elements, kind)
        return convert(dense, kind).index_put(tuple(self.positions), values, accumulate=True)

    def _must_fit(self, dense: Any) -> None:
        if tuple(dense.shape) != self.extents:
            raise RuntimeError(
                f"add: expected 'self' and 'other' to have same size, but self has size "
                f"{list(dense.shape)} while other has size {list(self.extents)} (FYI: dense-sparse "
                "addition does not currently support broadcasting)"
            )

    def __repr__(self) -> str:
        def indented(x: Tensor, by: int) -> str:
            return re.sub(", dtype=[^,)]*", "", repr(x.detach())).replace("\n", "\n" + " " * by)

        parts = [f"size={self.extents}", f"nnz={self._nnz()}"]
        parts += [f"device='{self.device}'"] * self.is_cuda
        parts += [f"dtype={self.dtype!r}"] * (self.dtype not in (float32, int64))
        parts += ["layout=tracejit.sparse_coo"] + ["requires_grad=True"] * self.requires_grad
        rest = ", ".join(parts)
        return (f"tensor(indices={indented(self.positions, 15)},\n"
                f"       values={indented(self.elements, 14)},\n       {rest})")  # fmt: skip
