"""Norms of vectors and matrices, and condition numbers.

In: floating or complex tensors, an order, dimensions. Out: tensors without these dimensions. Called
by users as `linalg.norm`, `linalg.vector_norm`, `linalg.matrix_norm`, `linalg.cond`. A vector's
norm is the record of `moments.py`; a matrix's is written with it and with singular values.
"""

from __future__ import annotations

import math
from typing import Any

from tracejit.core.ops.linalg_checks import must_be_float, must_be_matrix, must_be_square, title
from tracejit.core.ops.linalg_solvers import inv_record
from tracejit.core.ops.linalg_spectra import svdvals
from tracejit.core.ops.moments import must_have_identity, norm_record
from tracejit.core.ops.movement import movedim
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.shapes import equal, normalize_dim, normalize_dims
from tracejit.core.ops.types import (
    COMPLEX,
    FLOATING,
    SCALAR_NAMES,
    asked_dtype,
    dtype,
    promote_types,
)

_ORDERS = (2, -2, 1, -1, math.inf, -math.inf)


def _in_dtype(name: str, x: Any, wanted: dtype | None) -> Any:
    """Return `x` in the dtype that is asked for."""
    if x.dtype.category < FLOATING:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {title(x)}"
        )
    wanted = asked_dtype(wanted)
    if wanted is None:
        return x
    if wanted.category < FLOATING:
        raise RuntimeError(
            f"{name}: dtype should be floating point or complex, but got "
            f"{SCALAR_NAMES[wanted.name]}"
        )
    if wanted.category != x.dtype.category:
        kind = "complex" if x.dtype.category == COMPLEX else "real"
        raise RuntimeError(
            f"{name}: dtype should be {kind} for {kind} inputs, but got {SCALAR_NAMES[wanted.name]}"
        )
    if promote_types(x.dtype, wanted) is not wanted:
        raise RuntimeError(
            f"{name}: the dtype of the input ({title(x)}) should be convertible without narrowing "
            f"to the specified dtype ({SCALAR_NAMES[wanted.name]})"
        )
    return convert(x, wanted)


def _magnitudes(x: Any) -> Any:
    """Return the absolute values of complex numbers, and real numbers as they are."""
    return abs(x) if x.dtype.category == COMPLEX else x


def vector_norm(x: Any, ord: float = 2, dim: Any = None, keepdim: bool = False, *,
                dtype: dtype | None = None) -> Any:  # fmt: skip
    """Return the `ord`-norm of the elements over `dim` (None: all); `ord` is any number.

    >>> import tracejit
    >>> tracejit.linalg.vector_norm(tracejit.tensor([3.0, 4.0])).item()
    5.0

    RuntimeError for integers, and for extremes over nothing; TypeError for other orders.
    """
    if not isinstance(ord, (int, float)):
        raise TypeError(
            "linalg_vector_norm(): argument 'ord' (position 2) must be Number, not "
            f"{type(ord).__name__}"
        )
    name = "linalg.vector_norm"
    x = _in_dtype(name, x, dtype)
    dims = normalize_dims(dim, len(x.shape))
    must_have_identity(x, float(ord), dims, dim is None or dim == ())
    x = _magnitudes(x)
    return norm_record(x, p=float(ord), dims=dims, keepdim=bool(keepdim))


# -- matrices --------------------------------------------------------------------------------------
def _two(name: str, dim: Any, ndim: int) -> tuple[int, int]:
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if len(dims) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dims))}")
    rows, columns = (normalize_dim(d, ndim) for d in dims)
    if rows == columns:
        raise RuntimeError(f"{name}: dims must be different. Got ({dims[0]}, {dims[1]})")
    return rows, columns


def _by_values(A: Any, ord: Any, dims: tuple[int, int], keepdim: bool) -> Any:
    """Return the nuclear norm, or the extreme singular values."""
    must_be_float("linalg.matrix_norm", A, analytic=True)
    values = svdvals(movedim(A, dims, (-2, -1)))
    result = values.sum(-1) if ord == "nuc" else _extreme(values, ord, -1, False)
    for d in sorted(dims) if keepdim else ():
        result = result.unsqueeze(d)
    return result


def _extreme(x: Any, ord: float, dim: int, keepdim: bool) -> Any:
    """Return the largest along `dim`, 0 of nothing; the smallest for a negative order."""
    if ord > 0 and equal(x.shape[dim], 0):
        return x.sum(dim, keepdim)
    return x.amax(dim, keepdim) if ord > 0 else x.amin(dim, keepdim)


def matrix_norm(A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *,
                dtype: dtype | None = None) -> Any:  # fmt: skip
    """Return the norm of matrices in two dimensions.

    ord  "fro": of all elements; "nuc": the sum of the singular values; 2 or -2: the largest or the
         smallest of these; 1 or -1: the largest or smallest sum of a column's sizes; inf or -inf:
         of a row's

    >>> import tracejit
    >>> tracejit.linalg.matrix_norm(tracejit.ones(2, 3), 1).item()
    2.0

    RuntimeError for other orders and dimensions, and for integers.
    """
    name = "linalg.matrix_norm"
    must_be_matrix(name, A)
    if ord not in (*_ORDERS, "fro", "nuc"):
        text = ord if isinstance(ord, str) else f"{ord:g}"
        raise RuntimeError(f"{name}: Order {text} not supported.")
    if A.dtype.category < FLOATING:
        A = _in_dtype(name, A, dtype)
    dims = _two(name, dim, len(A.shape))
    if ord == "fro":
        return vector_norm(A, 2, dims, keepdim, dtype=dtype)
    A = _in_dtype(name, A, dtype)
    if ord in ("nuc", 2, -2):
        return _by_values(A, ord, dims, keepdim)
    rows, columns = dims if abs(ord) == 1 else dims[::-1]
    sums = norm_record(_magnitudes(A), p=1.0, dims=(rows,), keepdim=bool(keepdim))
    return _extreme(sums, ord, columns - (not keepdim and rows < columns), keepdim)


def norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *,
         dtype: dtype | None = None) -> Any:  # fmt: skip
    """Call `matrix_norm` where an order is given and the dimensions are two, else `vector_norm`.

    >>> import tracejit
    >>> x = tracejit.ones(2, 2)
    >>> tracejit.linalg.norm(x).item(), tracejit.linalg.norm(x, "nuc").item()
    (2.0, 2.0)
    """
    if dim is not None:
        dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
        if len(dims) not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}"
            )
        count = len(dims)
    else:
        dims, count = (-2, -1), len(A.shape)
        if ord is not None and count not in (1, 2):
            raise RuntimeError(
                "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
                f"{count}D."
            )
    if ord is not None and (count == 2 or isinstance(ord, str)):
        return matrix_norm(A, ord, dims, keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


# -- condition numbers -----------------------------------------------------------------------------
def cond(A: Any, p: Any = None) -> Any:
    """Return the condition numbers of matrices: how far a solution amplifies errors in its data.

    p  None or 2: the largest singular value by the smallest; -2: the other way round; another
       order of `matrix_norm`: the norms of A (square) and its inverse, multiplied; inf for a
       singular matrix

    >>> import tracejit
    >>> tracejit.linalg.cond(tracejit.tensor([[4.0, 0.0], [0.0, 2.0]])).item()
    2.0
    """
    if len(A.shape) < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p not in (None, "fro", "nuc", *_ORDERS):
        text = p if isinstance(p, str) else f"{p:g}"
        raise RuntimeError(f"linalg.cond got an invalid norm type: {text}")
    if any(equal(n, 0) for n in A.shape[-2:]):
        return A.new_zeros(tuple(A.shape[:-2]))
    if p in (None, 2, -2):
        values = svdvals(A)
        largest, smallest = values[..., 0], values[..., -1]
        return smallest / largest if p == -2 else largest / smallest
    must_be_square(f"linalg.cond(ord={p if isinstance(p, str) else format(p, 'g')})", A)
    must_be_float("linalg.cond", A, analytic=True)
    inverse, info = inv_record(A, check="")
    found = matrix_norm(A, p) * matrix_norm(inverse, p)
    return where((info != 0) | (found != found), math.inf, found)
