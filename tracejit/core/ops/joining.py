"""Several tensors to one, and one to several: cat, stack, split, chunk, unbind.

In: tensors, a dimension, sizes. Out: a new tensor (cat, stack), or a tuple of views (split and its
kin). Called by users and by `nn`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_record import convert, is_tensor
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import as_size, equal, hint, normalize_dim, same_structure
from tracejit.core.ops.slicing import select, slice_along, slice_record
from tracejit.core.ops.types import TensorType, promote_types


def _cat_type(*tensors: Any, dim: int, count: int) -> TensorType:
    first = tensors[0]
    total: Any = 0
    for k, x in enumerate(tensors):
        _must_join(first, x, dim, k)
        total = total + x.shape[dim]
    shape = list(first.shape)
    for x in tensors[1:]:  # prefer a known size to a symbolic one
        for d, size in enumerate(x.shape):
            shape[d] = size if type(size) is int else shape[d]
    shape[dim] = total
    return TensorType(first.dtype, tuple(shape), first.device)


def _must_join(first: Any, x: Any, dim: int, number: int) -> None:
    if len(x.shape) != len(first.shape):
        raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first.shape)} "
                           f"and {len(x.shape)}")
    for d, (a, b) in enumerate(zip(first.shape, x.shape)):
        if d != dim and not equal(a, b):
            raise RuntimeError(f"Sizes of tensors must match except in dimension {dim}. Expected "
                               f"size {hint(a)} but got size {hint(b)} for tensor number {number} "
                               f"in the list.")


def _cat_element(emit: Any, index: Sequence[Any], dim: int, count: int) -> Any:
    starts: list[Any] = [0]
    for k in range(count):
        starts.append(starts[-1] + emit.shape(k)[dim])

    def piece(first: int, end: int) -> Any:
        """Return the element of one of these operands, by halves: a kernel nests 100 levels deep
        at most."""
        if end - first == 1:
            return emit.operand(first, [*index[:dim], index[dim] - starts[first], *index[dim + 1:]])
        middle = (first + end) // 2
        return emit.where(index[dim] < starts[middle], lambda: piece(first, middle),
                          lambda: piece(middle, end))

    return piece(0, count)


def _cat_rule(grad: Any, tensors_type: Sequence[TensorType], dim: int) -> list[Any]:
    grads, start = [], 0
    for kind in tensors_type:
        stop = kind.shape[dim] + start
        grads.append(slice_record(grad, dim=dim, start=start, stop=stop, step=1))
        start = stop
    return grads


cat_record: Op = Op(
    "cat", "movement", ("*tensors",),
    infer=_cat_type,
    eager=lambda xp, *arrays, dim, count: xp.concatenate(arrays, dim),
    element=_cat_element,
    rules={"tensors": _cat_rule},
)  # fmt: skip


def must_be_list(name: str, tensors: Any) -> None:
    """Raise TypeError for what is no list or tuple of tensors."""
    if is_tensor(tensors) or not isinstance(tensors, Sequence):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
                        f"{type(tensors).__name__}")
    for k, x in enumerate(tensors):
        if not is_tensor(x):
            raise TypeError(f"expected Tensor as element {k} in argument 0, but got "
                            f"{type(x).__name__}")


def _promoted(tensors: Sequence[Any]) -> list[Any]:
    """Convert the tensors to their common dtype."""
    common = tensors[0].dtype
    for x in tensors[1:]:
        common = promote_types(common, x.dtype)
    return [convert(x, common) for x in tensors]


def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Put tensors one after the other in dimension `dim`; the other sizes must agree.

    >>> import tracejit
    >>> tracejit.cat([tracejit.zeros(2, 1), tracejit.ones(2, 2)], dim=1).tolist()
    [[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
    """
    must_be_list("cat", tensors)
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    pieces = _promoted(tensors)
    if any(not x.shape for x in pieces):
        number = next(k for k, x in enumerate(pieces) if not x.shape)
        raise RuntimeError(f"zero-dimensional tensor (at position {number}) cannot be concatenated")
    if all(len(x.shape) == 1 for x in pieces):
        if dim not in (0, -1) and all(map(_is_legacy_empty, pieces)):
            dim = 0
        k = normalize_dim(dim, 1)
    else:
        skipped = [_is_legacy_empty(x) for x in pieces]
        shape = list(pieces[skipped.index(False)].shape)
        k = normalize_dim(dim, len(shape))
        shape[k] = 0
        # Pieces that are skipped have gradients too: they become pieces of no size.
        pieces = [x.reshape(shape) if skip else x for x, skip in zip(pieces, skipped)]
    return cat_record(*pieces, dim=k, count=len(pieces))


def _is_legacy_empty(x: Any) -> bool:
    """Return True for shape (0,): PyTorch skips such tensors among those of a higher rank."""
    return len(x.shape) == 1 and hint(x.shape[0]) == 0 and bool(x.shape[0] == 0)


concat = concatenate = cat


def stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Put tensors of one shape along a new dimension `dim`.

    >>> import tracejit
    >>> tracejit.stack([tracejit.zeros(2), tracejit.ones(2)], dim=1).tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    must_be_list("stack", tensors)
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    pieces = _promoted(tensors)
    first = pieces[0].shape
    for number, x in enumerate(pieces):
        if len(x.shape) != len(first) or not all(map(equal, first, x.shape)):
            raise RuntimeError(f"stack expects each tensor to be equal size, but got "
                               f"{[hint(s) for s in first]} at entry 0 and "
                               f"{[hint(s) for s in x.shape]} at entry {number}")
    k = normalize_dim(dim, len(first) + 1)
    return cat_record(*(x.unsqueeze(k) for x in pieces), dim=k, count=len(pieces))


# -- apart ----------------------------------------------------------------------------------------


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple:
    """Return views of `split_size` elements each (the last may be smaller), or of the sizes in a
    list.

    >>> import tracejit
    >>> [p.tolist() for p in tracejit.arange(5).split(2)]
    [[0, 1], [2, 3], [4]]
    """
    listed = isinstance(split_size_or_sections, (tuple, list))
    pieces = unsafe_split(tensor, split_size_or_sections, dim)
    return _outputs(pieces, "SplitWithSizes" if listed else "Split")


@method()
def unsafe_split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple:
    """Do `split`; its pieces may be written also while gradients are recorded. Shapes are the same.

    >>> import tracejit
    >>> [x.shape[0] for x in tracejit.unsafe_split(tracejit.arange(5), 2)]
    [2, 2, 1]
    """
    k = normalize_dim(dim, len(tensor.shape))
    size = tensor.shape[k]
    if not isinstance(split_size_or_sections, (tuple, list)):
        return _in_pieces(tensor, k, as_size(split_size_or_sections))
    sections = [as_size(s) for s in split_size_or_sections]
    if not equal(sum(sections), size):
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {hint(size)} "
                           f"(input tensor's size at dimension {dim}), but got "
                           f"split_sizes={[hint(s) for s in sections]}")
    return _sections(tensor, k, sections)


@method("split")
def _split_method(self: Any, split_size: Any, dim: int = 0) -> tuple:
    """Call `split` along dimension `dim`. The method has another name for its argument.

    >>> import tracejit
    >>> [x.tolist() for x in tracejit.arange(5).split(2)]
    [[0, 1], [2, 3], [4]]
    """
    return split(self, split_size, dim)


def _outputs(pieces: tuple, name: str) -> tuple:
    """Mark pieces that may not be written while gradients are recorded.

    PyTorch makes all of them by one node, which has this name.
    """
    for number, piece in enumerate(pieces):
        piece._is_output_of(name, number)
    return pieces


def _is_output_of(self: Any, name: str, number: int) -> None:
    """Do nothing for values of graphs, which are never written. Tensors have their own method."""


method()(_is_output_of)


def _sections(input: Any, dim: int, sections: Sequence[Any]) -> tuple:
    pieces, start = [], 0
    for length in sections:
        pieces.append(slice_record(input, dim=dim, start=start, stop=start + length, step=1))
        start = start + length
    return tuple(pieces)


def _in_pieces(input: Any, dim: int, length: Any) -> tuple:
    if length < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={length}")
    size = input.shape[dim]
    if length == 0:
        if size == 0:
            return (slice_along(input, dim),)
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension "
                           f"size of {hint(size)}")
    whole = max(int((size + (length - 1)) // length), 1) - 1
    return _sections(input, dim, [*[length] * whole, size - whole * length])


@method()
def split_with_sizes(input: Any, split_sizes: Sequence[Any], dim: int = 0) -> tuple:
    """Call `split` with a list of sizes along `dim`, which add up to that of the dimension.

    >>> import tracejit
    >>> tracejit.split_with_sizes(tracejit.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    return split(input, list(split_sizes), dim)


@method()
def unsafe_split_with_sizes(input: Any, split_sizes: Sequence[Any], dim: int = 0) -> tuple:
    """Call `unsafe_split` with a list of sizes along `dim`, which add up to that of the dimension.

    >>> import tracejit
    >>> tracejit.unsafe_split_with_sizes(tracejit.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    return unsafe_split(input, list(split_sizes), dim)


@method()
def chunk(input: Any, chunks: int, dim: int = 0) -> tuple:
    """Return a tuple of at most `chunks` views of equal size along dimension `dim`; the last may be
    smaller.

    RuntimeError for fewer than 1 chunk.

    >>> import tracejit
    >>> [x.tolist() for x in tracejit.arange(5).chunk(3)]
    [[0, 1], [2, 3], [4]]
    """
    return _outputs(unsafe_chunk(input, chunks, dim), "Split")


@method()
def unsafe_chunk(input: Any, chunks: int, dim: int = 0) -> tuple:
    """Do `chunk` along dimension `dim`; its pieces may be written also while gradients are
    recorded.

    >>> import tracejit
    >>> len(tracejit.unsafe_chunk(tracejit.arange(4), 2))
    2
    """
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    k = normalize_dim(dim, len(input.shape))
    size = input.shape[k]
    if same_structure(size % chunks, 0) or equal(size, 0):
        return _sections(input, k, [size // chunks] * chunks)
    return _in_pieces(input, k, (size + (chunks - 1)) // chunks)


@method()
def tensor_split(input: Any, indices_or_sections: Any, dim: int = 0) -> tuple:
    """Return `sections` views along dimension `dim`, sizes differing by at most one, or cut before
    the given indices.

    RuntimeError for a 0-dim input and fewer than 1 section.

    >>> import tracejit
    >>> [x.tolist() for x in tracejit.tensor_split(tracejit.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    if not input.shape:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a "
                           "tensor with 0 dims")
    k = normalize_dim(dim, len(input.shape))
    size = input.shape[k]
    if hasattr(indices_or_sections, "dtype") and indices_or_sections.shape:
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, (tuple, list)):
        cuts = [None, *indices_or_sections, None]
        return tuple(slice_along(input, k, a, b) for a, b in zip(cuts, cuts[1:]))
    count = as_size(indices_or_sections)
    if count <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {count}")
    low, more = size // count, int(size % count)
    return _sections(input, k, [low + 1] * more + [low] * (count - more))


@method()
def unbind(input: Any, dim: int = 0) -> tuple:
    """Return the elements of dimension `dim` as a tuple of views.

    >>> import tracejit
    >>> len(tracejit.zeros(3, 2).unbind())
    3
    """
    if not input.shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    k = normalize_dim(dim, len(input.shape))
    pieces = tuple(select(input, k, i) for i in range(int(input.shape[k])))
    return _outputs(pieces, "Unbind")


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Any, ...]:
    """Return grids of coordinates: each 1-d (or 0-d) tensor repeated along the others' dimensions.

    The grids are views. `indexing` "ij" (the default) or "xy", which swaps the first two
    dimensions.

    >>> import tracejit
    >>> x, y = tracejit.meshgrid(tracejit.arange(2), tracejit.arange(3), indexing="ij")
    >>> x.tolist(), y.tolist()
    ([[0, 0, 0], [1, 1, 1]], [[0, 1, 2], [0, 1, 2]])

    RuntimeError for tensors of more dimensions or of different dtypes.
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for x in tensors:
        if len(x.shape) > 1:
            raise RuntimeError("tracejit.meshgrid: Expected 0D or 1D tensor in the tensor list "
                               f"but got: {x}")
        if x.dtype is not tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if x.device != tensors[0].device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError('tracejit.meshgrid: indexing must be one of "xy" or "ij", but received: '
                           f"{indexing}")
    if indexing is None:
        warnings.warn("torch.meshgrid: in an upcoming release, it will be required to pass the "
                      "indexing argument.", UserWarning, stacklevel=2)
    swapped = indexing == "xy" and len(tensors) > 1
    rows = [x.reshape((-1,)) for x in tensors]
    if swapped:
        rows[0], rows[1] = rows[1], rows[0]
    shape = tuple(x.shape[0] for x in rows)
    grids = [x.reshape((*(1,) * k, -1, *(1,) * (len(rows) - k - 1))).expand(shape)
             for k, x in enumerate(rows)]
    if swapped:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)
