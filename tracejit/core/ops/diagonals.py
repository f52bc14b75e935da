"""Matrices made of their diagonals, blocks or powers, and the places of triangles: diag,
diag_embed, block_diag, vander, tril_indices.

In: vectors, matrices, sizes. Out: matrices, or places as int64. Called by users.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.memory.devices import makes_tensors
from tracejit.core.ops.creation import full_of, iota, zeros
from tracejit.core.ops.joining import cat, must_be_list
from tracejit.core.ops.movement import movedim
from tracejit.core.ops.operators import method
from tracejit.core.ops.padding import pad
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.record import Op
from tracejit.core.ops.scan import cumprod
from tracejit.core.ops.shapes import as_size, normalize_dim
from tracejit.core.ops.slicing import diagonal as diagonal_of
from tracejit.core.ops.slicing import diagonal_scatter
from tracejit.core.ops.types import FLOATING, TensorType, dtype, int64, promote_types


@method()
def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Return matrices of zeros with the vectors in the last dimension of `input` as diagonals.

    offset: of the diagonal, above the main one. dim1, dim2: where the rows and columns stand in the
    result.

    >>> import tracejit
    >>> tracejit.tensor([1, 2]).diag_embed().tolist()
    [[1, 0], [0, 2]]

    RuntimeError for two equal dimensions.
    """
    rank, shift = len(input.shape) + 1, as_size(offset)
    first, second = (normalize_dim(d, rank) for d in (dim1, dim2))
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size = input.shape[-1] + abs(shift)
    zeros = full_of(input, (*input.shape[:-1], size, size), 0, input.dtype, input.device)
    filled = diagonal_scatter(zeros, input, shift, -2, -1)
    return movedim(filled, (-2, -1), (first, second))


@method()
def diag(input: Any, diagonal: int = 0) -> Any:
    """Return the matrix with the vector `input` on diagonal number `diagonal`; of a matrix, that
    diagonal.

    >>> import tracejit
    >>> tracejit.tensor([[1, 2], [3, 4]]).diag().tolist()
    [1, 4]

    RuntimeError for other numbers of dimensions.
    """
    rank = len(input.shape)
    if rank == 1:
        return diag_embed(input, diagonal)
    if rank == 2:
        return diagonal_of(input, diagonal).clone()
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {rank}D")


@method()
def diagflat(input: Any, offset: int = 0) -> Any:
    """Return the matrix (n, n) with all elements of `input` on diagonal number `offset`, zeros
    elsewhere.

    The n is the number of elements plus |offset|; the dtype is the same.

    >>> import tracejit
    >>> tracejit.diagflat(tracejit.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    return diag_embed(input.reshape((-1,)), offset)


def block_diag(*tensors: Any) -> Any:
    """Return the matrix with these matrices (vectors as rows) along its diagonal, zeros elsewhere.

    >>> import tracejit
    >>> tracejit.block_diag(tracejit.ones(1, 2), tracejit.tensor(3.0)).tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 3.0]]

    RuntimeError for more than two dimensions.
    """
    must_be_list("block_diag", tensors)
    for k, x in enumerate(tensors):
        if len(x.shape) > 2:
            raise RuntimeError("torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                               f"Input {k} has {len(x.shape)} dimensions")
    if not tensors:
        return zeros(1, 0)
    common = tensors[0].dtype
    for x in tensors[1:]:
        common = promote_types(common, x.dtype)
    blocks = [convert(x, common).reshape((*(1,) * (2 - len(x.shape)), *x.shape)) for x in tensors]
    rows, before, width = [], 0, sum(x.shape[1] for x in blocks)
    for x in blocks:
        after = width - before - x.shape[1]
        rows.append(pad(x, (before, after)))
        before = before + x.shape[1]
    return cat(rows, 0)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Return the powers N - 1 .. 0 of a vector's elements, as rows.

    N           the vector's length if None
    increasing  from power 0 to N - 1

    >>> import tracejit
    >>> tracejit.vander(tracejit.tensor([2, 3]), increasing=True).tolist()
    [[1, 2], [1, 3]]

    RuntimeError for a tensor that is no vector.
    """
    if len(x.shape) != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.shape[0] if N is None else as_size(N)
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    kind = x.dtype if x.dtype.category >= FLOATING else int64
    if count == 0:
        return full_of(x, (x.shape[0], 0), 0, kind, x.device)
    first = full_of(x, (x.shape[0], 1), 1, kind, x.device)
    factors = convert(x, kind).unsqueeze(-1).expand(x.shape[0], count - 1)
    powers = cumprod(cat([first, factors], 1), 1)
    return powers if increasing else powers.flip(1)


# -- places of triangles ---------------------------------------------------------------------------
def _places(xp: Any, rows: Any, columns: int, offset: int, lower: bool) -> Any:
    below = xp.tri(rows.shape[0], columns, offset if lower else offset - 1, dtype=bool)
    return xp.stack(xp.nonzero(below if lower else ~below)).astype(xp.int64)


def _places_type(rows: Any, columns: int, offset: int, lower: bool) -> TensorType:
    count, shift = int(rows.shape[0]), offset if lower else offset - 1
    below = sum(min(max(k + shift + 1, 0), columns) for k in range(count))
    return TensorType(int64, (2, below if lower else count * columns - below), rows.device)


places_record = Op("triangle_places", "extern", ("rows",), infer=_places_type, eager=_places)


def _triangle(row: Any, col: Any, offset: Any, lower: bool, kind: dtype, device: Any) -> Any:
    rows, columns, shift = int(as_size(row)), int(as_size(col)), int(as_size(offset))
    for name, size in (("row", rows), ("col", columns)):
        if size < 0:
            raise RuntimeError(f"{name} must be non-negative, got{size}")
    found = places_record(iota(rows, device=device), columns=columns, offset=shift, lower=lower)
    return convert(found, kind)


@makes_tensors
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: dtype = int64, device: Any = None,
                 layout: Any = None) -> Any:
    """Return (2, n): rows and columns of the lower triangle of a (row, col) matrix, in order.

    >>> import tracejit
    >>> tracejit.tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]

    RuntimeError for negative sizes.
    """
    return _triangle(row, col, offset, True, dtype, device)


@makes_tensors
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: dtype = int64, device: Any = None,
                 layout: Any = None) -> Any:
    """Return (2, n): rows and columns of the upper triangle of a (row, col) matrix, in order.

    offset  first diagonal that counts; default 0, the main one

    The dtype is int64 unless told. RuntimeError for negative sizes.

    >>> import tracejit
    >>> tracejit.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _triangle(row, col, offset, False, dtype, device)
