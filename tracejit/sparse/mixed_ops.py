"""Ops with a sparse operand, methods of dense tensors that concern sparse ones, and gradients of
embeddings.

In: sparse tensors among the operands of an op. Out: sparse tensors again, or dense ones. Most ops
do not take sparse tensors, and raise NotImplementedError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.ops.embedding import install_rows
from tracejit.core.ops.joining import cat
from tracejit.core.ops.operators import Operators, method
from tracejit.core.ops.pointwise_record import convert, is_number
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import numel
from tracejit.sparse.tensor import SparseTensor

DENSE = "add(sparse, dense) is not supported. Use add(dense, sparse) instead."


def _is_scalar(x: Any) -> bool:
    return is_number(x) or isinstance(x, Operators) and not x.shape  # type: ignore[attr-defined]


def _cast(op: Op, x: SparseTensor, **attributes: Any) -> SparseTensor:
    return x._with(op(x.elements, **attributes))


def _plus(op: Op, input: Any, other: Any) -> Any:
    if not isinstance(other, SparseTensor):
        raise RuntimeError(DENSE)
    if op.name == "sub":
        other = other.neg()
    if not isinstance(input, SparseTensor):
        return other.added_to(input)
    if input.extents != other.extents:
        raise RuntimeError("add: expected sizes of 'self' and 'other' to match, but "
                           f"{list(input.extents)} != {list(other.extents)}")
    # No need to concatenate: the sum has as many elements as each operand.
    if input.positions is other.positions:
        return input._with(input.elements + other.elements)
    places = cat((input.positions, other.positions), 1)
    both = SparseTensor(places, cat((input.elements, other.elements)), input.extents, False)
    return both.coalesce() if input.coalesced and other.coalesced else both


def _times(op: Op, input: Any, other: Any) -> SparseTensor:
    kept, factor = (input, other) if isinstance(input, SparseTensor) else (other, input)
    if isinstance(factor, SparseTensor):
        raise NotImplementedError("mul: the product of two sparse tensors is not supported; call "
                                  ".to_dense() on one of them")
    if not _is_scalar(factor):
        # Absent elements stay absent, also where the dense factor is infinite or NaN.
        factor = factor.expand(kept.extents)[tuple(kept.positions)]
    return kept._with(kept.elements * factor)


def _divided(op: Op, input: Any, other: Any) -> SparseTensor:
    if not _is_scalar(other):
        raise RuntimeError("Sparse division requires a scalar or zero-dim dense tensor divisor "
                           f"(got shape {list(other.shape)} for divisor)")
    return input._with(input.elements / other)


def _negative(op: Op, input: SparseTensor) -> SparseTensor:
    return input._with(input.elements.neg())


def _power(op: Op, input: Any, exponent: Any) -> SparseTensor:
    if not is_number(exponent) or not exponent > 0:
        raise NotImplementedError("pow: of sparse tensors, powers by positive numbers only")
    # Elements of one position add up first: a power of a sum is no sum of powers.
    kept = input.coalesce()
    return kept._with(kept.elements ** exponent)


_OPS: dict[str, Callable[..., Any]] = {
    "convert": _cast, "add": _plus, "sub": _plus, "mul": _times, "div": _divided, "neg": _negative,
    "pow": _power,
}  # fmt: skip
# Ops with f(0) = 0: absent elements stay absent.
_ZERO_AT_ZERO = frozenset((
    "abs", "asin", "asinh", "atan", "atanh", "ceil", "cube", "deg2rad", "erf", "erfinv", "expm1",
    "floor", "frac", "log1p", "rad2deg", "relu", "round", "sgn", "sign", "sin", "sinh", "sqrt",
    "square", "tan", "tanh", "trunc",
))  # fmt: skip


def _dispatch(op: Op, operands: tuple, attributes: dict) -> Any:
    """Run an op with a sparse operand. NotImplementedError where all elements would be needed."""
    run = _OPS.get(op.name)
    if run is not None:
        return run(op, *operands, **attributes)
    if op.name in _ZERO_AT_ZERO and len(operands) == 1:
        # These ops are not linear, so elements of one position must be summed before.
        kept = operands[0].coalesce()
        return kept._with(op(kept.elements, **attributes))
    raise NotImplementedError(
        f"{op.name}: sparse tensors are not supported here; call .to_dense() first"
    )


SparseTensor.dispatch = staticmethod(_dispatch)  # type: ignore[attr-defined]


# -- what dense tensors have of it -----------------------------------------------------------------
@method()
def sparse_mask(self: Any, mask: SparseTensor) -> SparseTensor:
    """Return the elements at the positions of a sparse tensor of the same shape, as a sparse
    tensor.

    >>> import tracejit
    >>> mask = tracejit.eye(2).to_sparse()
    >>> tracejit.ones(2, 2).sparse_mask(mask).to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tuple(self.shape) != mask.extents:
        raise RuntimeError("sparse_mask(): operands have incompatible sizes; self has size "
                           f"{list(self.shape)} but mask has size {list(mask.extents)}")
    return mask._with(self[tuple(mask.positions)])


@method()
def to_sparse(self: Any, sparse_dim: int | None = None) -> SparseTensor:
    """Return the elements that are not 0, with their positions: a sparse tensor of the same shape.

    sparse_dim  rows are kept whole from this dimension on; None: there are none

    >>> import tracejit
    >>> tracejit.tensor([0.0, 3.0]).to_sparse().values()
    tensor([3.])
    """
    if not self.shape:
        raise NotImplementedError("to_sparse: a tensor without dimensions is not supported")
    count = self.dim() if sparse_dim is None else sparse_dim
    if not 0 < count <= self.dim():
        span = f"in [0,{self.dim()}] range, but {count} is given"
        span = span if count else "in >0 when self.dim()>0"
        raise RuntimeError(f"dense_to_sparse: sparse_dim argument must be {span}")
    there = self if count == self.dim() else (self != 0).flatten(count).any(-1)
    at = there.nonzero().transpose(0, 1)
    return SparseTensor(at, self[tuple(at)], tuple(self.shape), True)


@method()
def to_sparse_coo(self: Any) -> SparseTensor:
    """Return what `to_sparse` returns: a sparse tensor of the same shape.

    >>> import tracejit
    >>> tracejit.tensor([0.0, 3.0]).to_sparse_coo().indices()
    tensor([[1]])
    """
    return to_sparse(self)


@method()
def to_sparse_csr(self: Any, dense_dim: int | None = None) -> Any:
    """Return the elements of a matrix that are not 0, row by row.

    >>> import tracejit
    >>> tracejit.eye(2).to_sparse_csr() @ tracejit.ones(2)
    tensor([1., 1.])
    """
    return to_sparse(self).to_sparse_csr()


@method()
def to_sparse_csc(self: Any, dense_dim: int | None = None) -> Any:
    """Return the elements of a matrix that are not 0, column by column.

    >>> import tracejit
    >>> tracejit.eye(2).to_sparse_csc().values()
    tensor([1., 1.])
    """
    return to_sparse(self).to_sparse_csc()


@method()
def to_dense(self: Any, dtype: Any = None) -> Any:
    """Return the tensor itself, or in another dtype; the same shape.

    >>> import tracejit
    >>> tracejit.ones(2).to_dense()
    tensor([1., 1.])
    """
    return self if dtype is None else convert(self, dtype)


@method()
def sparse_dim(self: Any) -> int:
    """Return 0: no dimension of a tensor of any shape is sparse.

    >>> import tracejit
    >>> tracejit.ones(2).sparse_dim()
    0
    """
    return 0


@method()
def dense_dim(self: Any) -> int:
    """Return the number of dimensions: all are dense.

    >>> import tracejit
    >>> tracejit.ones(2, 3).dense_dim()
    2
    """
    return len(self.shape)


def _only_sparse(name: str) -> Any:
    def call(self: Any) -> Any:
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got Strided")

    call.__doc__ = "RuntimeError: the tensor is dense."
    return method(name)(call)


for _name in ("coalesce", "indices", "is_coalesced", "values"):
    _only_sparse(_name)


# -- gradients of embeddings -----------------------------------------------------------------------
def _rows(places: Any, rows: Any, size: tuple) -> SparseTensor:
    """Return the gradient of a table from those of the rows that were read."""
    rows = rows.reshape(numel(places.shape), *size[1:])
    return SparseTensor(places.reshape(1, -1), rows, size, False)


install_rows(_rows)
