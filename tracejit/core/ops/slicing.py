"""Views of a part of a tensor (slice, select, diagonal, as_strided), and twins that write it back.

In: tensors and positions (ints or symbolic sizes, negative ones as Python's). Out: views.
`*_scatter` give a new whole with another part, `slice_backward` the part among zeros. Called by
indexing, by users and by gradient rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.ops import creation
from tracejit.core.ops.movement import typed
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_record import convert, is_tensor, must_be_tensors
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import (
    as_size,
    hint,
    normalize_dim,
    numel,
    same_shape,
    same_structure,
    shape_text,
    symbolic,
)  # fmt: skip
from tracejit.core.ops.types import INTEGER, TensorType


def part(dim: int, key: Any) -> tuple:
    """Return NumPy's index for `key` in dimension `dim`; Ellipsis keeps 0-dim results views."""
    return (*(slice(None),) * dim, key, Ellipsis)


def _replaced(sizes: Sequence[Any], dim: int, size: Any) -> tuple:
    return (*sizes[:dim], size, *sizes[dim + 1:])


def _count(start: Any, stop: Any, step: int) -> Any:
    return (stop - start + (step - 1)) // step


def _inside(i: Any, start: Any, stop: Any, step: int) -> Any:
    """Return the condition that position i is in the slice."""
    within = (i >= start) & (i < stop)
    return within if step == 1 else within & ((i - start) % step == 0)


def _source(index: Sequence[Any], dim: int, start: Any, step: int) -> list[Any]:
    """Map the `index` of an element of the whole to its index in the slice."""
    moved = index[dim] - start
    return [*index[:dim], moved if step == 1 else moved // step, *index[dim + 1:]]


# -- slice ----------------------------------------------------------------------------------------


def _slice_element(emit: Any, index: Sequence[Any], dim: int, start: Any, stop: Any,
                   step: int) -> Any:
    moved = index[dim] * step + start
    return emit.operand(0, [*index[:dim], moved, *index[dim + 1:]])


slice_record: Op = Op(
    "slice", "movement", ("input",), views=True, sizes=("start", "stop"),
    view_inverse=lambda base, src, dim, start, stop, step: slice_scatter_record(
        base, src, dim=dim, start=start, stop=stop, step=step),
    infer=lambda input, dim, start, stop, step: typed(
        input, _replaced(input.shape, dim, _count(start, stop, step))),
    eager=lambda xp, x, dim, start, stop, step: x[part(dim, slice(start, stop, step))],
    element=_slice_element,
    rules={"input": lambda grad, input_type, dim, start, stop, step: slice_backward_record(
        grad, size=input_type.shape[dim], dim=dim, start=start, stop=stop, step=step)},
)  # fmt: skip


def _slice_backward_element(emit: Any, index: Sequence[Any], size: Any, dim: int, start: Any,
                            stop: Any, step: int) -> Any:
    return emit.where(_inside(index[dim], start, stop, step),
                      lambda: emit.operand(0, _source(index, dim, start, step)),
                      lambda: emit.number(0))


def _slice_backward_eager(xp: Any, grad: Any, size: int, dim: int, start: int, stop: int,
                          step: int) -> Any:
    whole = xp.zeros(_replaced(grad.shape, dim, size), grad.dtype)
    whole[part(dim, slice(start, stop, step))] = grad
    return whole


slice_backward_record: Op = Op(
    "slice_backward", "movement", ("grad",),
    infer=lambda grad, size, dim, start, stop, step: typed(grad, _replaced(grad.shape, dim, size)),
    eager=_slice_backward_eager,
    element=_slice_backward_element, embeds=True,
    rules={"grad": lambda grad, dim, start, stop, step: slice_record(
        grad, dim=dim, start=start, stop=stop, step=step)},
)  # fmt: skip


def slice_bounds(size: Any, start: Any, stop: Any, step: Any) -> tuple[Any, Any, int]:
    """Return Python's slice as 0 <= start <= stop <= size; ValueError for a step of 0 or less."""
    step = 1 if step is None else as_size(step)
    if step <= 0:
        raise ValueError("step must be greater than zero")
    first = 0 if start is None else _clamped(symbolic(as_size(start)), size)
    last = size if stop is None else _clamped(symbolic(as_size(stop)), size)
    if not _is_zero(first) and not same_structure(first, last) and last < first:
        last = first
    return first, last, int(step)


def _is_zero(size: Any) -> bool:
    return type(size) is int and size == 0


def _clamped(place: Any, size: Any) -> Any:
    """Count `place` from the front, within 0 and `size`."""
    if place < 0:
        place = size + place
        return 0 if place < 0 else place
    if _is_zero(place) or same_structure(place, size):
        return place
    return size if place > size else place


def slice_along(input: Any, dim: int, start: Any = None, stop: Any = None, step: Any = None) -> Any:
    """Return input[..., start:stop:step, ...] in dimension `dim`, a view."""
    k = normalize_dim(dim, len(input.shape))
    first, last, by = slice_bounds(input.shape[k], start, stop, step)
    return slice_record(input, dim=k, start=first, stop=last, step=by)


@method()
def narrow(input: Any, dim: int, start: Any, length: Any) -> Any:
    """Return `length` elements of dimension `dim` from `start` on, a view.

    >>> import tracejit
    >>> tracejit.arange(5).narrow(0, 1, 3).tolist()
    [1, 2, 3]
    """
    if not input.shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if is_tensor(start) and (start.shape or start.dtype.category != INTEGER):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    k = normalize_dim(dim, len(input.shape))
    size, first, count = input.shape[k], symbolic(as_size(start)), symbolic(as_size(length))
    if first < 0:
        first = first + size
    if count < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    end = first + count
    if first < 0 or first > size:
        raise IndexError(f"start out of range (expected to be in range of [-{hint(size)}, "
                         f"{hint(size)}], but got {hint(as_size(start))})")
    if not same_structure(end, size) and end > size:
        raise RuntimeError(f"start ({hint(start)}) + length ({hint(count)}) exceeds dimension size "
                           f"({hint(size)}).")
    return slice_record(input, dim=k, start=first, stop=end, step=1)


def _slice_scatter_element(emit: Any, index: Sequence[Any], dim: int, start: Any, stop: Any,
                           step: int) -> Any:
    return emit.where(_inside(index[dim], start, stop, step),
                      lambda: emit.operand(1, _source(index, dim, start, step)),
                      lambda: emit.operand(0, index))


def _slice_scatter_type(base: Any, src: Any, dim: int, start: Any, stop: Any,
                        step: int) -> TensorType:
    must_fit_slice(src, _replaced(base.shape, dim, _count(start, stop, step)))
    return typed(base, base.shape)


def must_fit_slice(src: Any, shape: tuple) -> None:
    if not same_shape(src.shape, shape):
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = "
                           f"{shape_text(src.shape)}, slice size = {shape_text(shape)}")


def _slice_scatter_eager(xp: Any, base: Any, src: Any, dim: int, start: int, stop: int,
                         step: int) -> Any:
    whole = xp.array(base, order="C")
    whole[part(dim, slice(start, stop, step))] = src
    return whole


slice_scatter_record: Op = Op(
    "slice_scatter", "movement", ("base", "src"),
    sizes=("start", "stop"),
    infer=_slice_scatter_type,
    eager=_slice_scatter_eager,
    element=_slice_scatter_element,
    rules={
        "base": lambda grad, src_type, dim, start, stop, step: slice_scatter_record(
            grad, creation.zeros_of(grad, src_type._replace(dtype=grad.dtype)),
            dim=dim, start=start, stop=stop, step=step),
        "src": lambda grad, dim, start, stop, step: slice_record(
            grad, dim=dim, start=start, stop=stop, step=step),
    },
)  # fmt: skip


@method()
def slice_scatter(input: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None,
                  step: Any = 1) -> Any:
    """Return a copy of `input` whose input[start:end:step] in dimension `dim` is `src`.

    >>> import tracejit
    >>> tracejit.slice_scatter(tracejit.zeros(3), tracejit.ones(2), 0, 1)
    tensor([0., 1., 1.])
    """
    must_be_tensors("slice_scatter", ("src",), (src,))
    k = normalize_dim(dim, len(input.shape))
    first, last, by = slice_bounds(input.shape[k], start, end, step)
    return slice_scatter_record(input, src, dim=k, start=first, stop=last, step=by)


# -- select ---------------------------------------------------------------------------------------


select_record: Op = Op(
    "select", "movement", ("input",), views=True, sizes=("index",),
    view_inverse=lambda base, src, dim, index: _write_select(base, src, dim, index),
    infer=lambda input, dim, index: typed(input, (*input.shape[:dim], *input.shape[dim + 1:])),
    eager=lambda xp, x, dim, index: x[part(dim, index)],
    element=lambda emit, place, dim, index: emit.operand(0, [*place[:dim], index, *place[dim:]]),
    rules={"input": lambda grad, input_type, dim, index: slice_backward_record(
        grad.unsqueeze(dim), size=input_type.shape[dim], dim=dim, start=index, stop=index + 1,
        step=1)},
)  # fmt: skip


def position(index: Any, size: Any) -> Any | None:
    """Return `index` counted from the front; None if it is out of range."""
    place = symbolic(as_size(index))
    if place < 0:
        place = place + size
        return place if place >= 0 else None
    return place if place < size else None


@method()
def select(input: Any, dim: int, index: Any) -> Any:
    """Return element `index` of dimension `dim`, a view with one dimension less.

    >>> import tracejit
    >>> tracejit.arange(6).reshape(2, 3).select(1, -1).tolist()
    [2, 5]
    """
    if not input.shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    k = normalize_dim(dim, len(input.shape))
    place = position(index, input.shape[k])
    if place is None:
        raise IndexError(f"select(): index {hint(index)} out of range for tensor of size "
                         f"{shape_text(input.shape)} at dimension {k}")
    return select_record(input, dim=k, index=place)


def _write_select(base: Any, src: Any, dim: int, index: Any) -> Any:
    return slice_scatter_record(base, src.unsqueeze(dim), dim=dim, start=index, stop=index + 1,
                                step=1)


@method()
def select_scatter(input: Any, src: Any, dim: int, index: Any) -> Any:
    """Return a copy of `input` whose element `index` of dimension `dim` is `src`.

    >>> import tracejit
    >>> tracejit.select_scatter(tracejit.zeros(3), tracejit.tensor(1.0), 0, 1)
    tensor([0., 1., 0.])
    """
    k = normalize_dim(dim, len(input.shape))
    place = position(index, input.shape[k])
    if place is None:
        raise IndexError(f"select_scatter(): index {hint(index)} out of range for tensor of size "
                         f"{shape_text(input.shape)} at dimension {k}")
    return _write_select(input, src, k, place)


# -- diagonal -------------------------------------------------------------------------------------


def _diagonal_shape(shape: Sequence[Any], offset: int, dim1: int, dim2: int) -> tuple:
    rows = shape[dim1] - max(-offset, 0)
    columns = shape[dim2] - max(offset, 0)
    shorter = columns if not same_structure(rows, columns) and columns < rows else rows
    length = 0 if shorter < 0 else shorter
    return (*(s for d, s in enumerate(shape) if d not in (dim1, dim2)), length)


def _diagonal_element(emit: Any, index: Sequence[Any], offset: int, dim1: int, dim2: int) -> Any:
    place = dict(zip((dim1, dim2), (index[-1] + max(-offset, 0), index[-1] + max(offset, 0))))
    rest = iter(index)
    return emit.operand(0, [place[d] if d in place else next(rest)
                            for d in range(len(emit.shape(0)))])


diagonal_record: Op = Op(
    "diagonal", "movement", ("input",), views=True,
    view_inverse=lambda base, src, offset, dim1, dim2: diagonal_scatter_record(
        base, src, offset=offset, dim1=dim1, dim2=dim2),
    infer=lambda input, offset, dim1, dim2: typed(
        input, _diagonal_shape(input.shape, offset, dim1, dim2)),
    eager=lambda xp, x, offset, dim1, dim2: x.diagonal(offset, dim1, dim2),
    element=_diagonal_element,
    rules={"input": lambda grad, input_type, offset, dim1, dim2: diagonal_scatter_record(
        creation.zeros_of(grad, input_type._replace(dtype=grad.dtype)), grad, offset=offset,
        dim1=dim1, dim2=dim2)},
)  # fmt: skip


def _diagonal_dims(input: Any, dim1: int, dim2: int) -> tuple[int, int]:
    ndim = len(input.shape)
    a, b = normalize_dim(dim1, ndim), normalize_dim(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return a, b


@method()
def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Return the diagonal of two dimensions as a new last one, a view.

    >>> import tracejit
    >>> tracejit.arange(6).reshape(2, 3).diagonal(1).tolist()
    [1, 5]
    """
    a, b = _diagonal_dims(input, dim1, dim2)
    return diagonal_record(input, offset=int(as_size(offset)), dim1=a, dim2=b)


def _diagonal_scatter_type(base: Any, src: Any, offset: int, dim1: int, dim2: int) -> TensorType:
    must_fit_slice(src, _diagonal_shape(base.shape, offset, dim1, dim2))
    return typed(base, base.shape)


def _diagonal_scatter_element(emit: Any, index: Sequence[Any], offset: int, dim1: int,
                              dim2: int) -> Any:
    kept = [i for d, i in enumerate(index) if d not in (dim1, dim2)]
    return emit.where(index[dim2] - index[dim1] == offset,
                      lambda: emit.operand(1, [*kept, index[dim1] - max(-offset, 0)]),
                      lambda: emit.operand(0, index))


def _diagonal_scatter_eager(xp: Any, base: Any, src: Any, offset: int, dim1: int,
                            dim2: int) -> Any:
    whole = xp.array(base, order="C")
    moved = xp.moveaxis(whole, (dim1, dim2), (-2, -1))
    along = xp.arange(src.shape[-1])
    moved[..., along + max(-offset, 0), along + max(offset, 0)] = src
    return whole


diagonal_scatter_record: Op = Op(
    "diagonal_scatter", "movement", ("base", "src"),
    infer=_diagonal_scatter_type,
    eager=_diagonal_scatter_eager,
    element=_diagonal_scatter_element,
    rules={
        "base": lambda grad, src_type, offset, dim1, dim2: diagonal_scatter_record(
            grad, creation.zeros_of(grad, src_type._replace(dtype=grad.dtype)), offset=offset,
            dim1=dim1, dim2=dim2),
        "src": lambda grad, offset, dim1, dim2: diagonal_record(
            grad, offset=offset, dim1=dim1, dim2=dim2),
    },
)  # fmt: skip


@method()
def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Return a copy of `input` whose diagonal of dimensions `dim1` and `dim2` is `src`.

    >>> import tracejit
    >>> tracejit.diagonal_scatter(tracejit.zeros(2, 2), tracejit.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    must_be_tensors("diagonal_scatter", ("src",), (src,))
    a, b = _diagonal_dims(input, dim1, dim2)
    return diagonal_scatter_record(input, src, offset=int(as_size(offset)), dim1=a, dim2=b)


# -- as_strided -----------------------------------------------------------------------------------


def _as_strided_eager(xp: Any, x: Any, size: tuple, stride: tuple, offset: int) -> Any:
    steps = tuple(s * x.itemsize for s in stride)
    flat = xp.ascontiguousarray(x).reshape(-1)
    return xp.lib.stride_tricks.as_strided(flat[offset:], size, steps)


def _as_strided_element(emit: Any, index: Sequence[Any], size: tuple, stride: tuple,
                        offset: Any) -> Any:
    linear: Any = offset
    for i, step in zip(index, stride):
        linear = i * step + linear
    operand = emit.shape(0)
    place: list[Any] = [0] * len(operand)
    for d in range(len(operand) - 1, 0, -1):
        place[d] = linear % operand[d]
        linear = linear // operand[d]
    if operand:
        place[0] = linear
    return emit.operand(0, place)


def _as_strided_rule(grad: Any, input_type: TensorType, size: tuple, stride: tuple,
                     offset: Any) -> Any:
    flat = creation.full_of(grad, (numel(input_type.shape),), 0, grad.dtype)
    places = _strided_places(grad, input_type.shape, size, stride, offset)
    return flat.index_add(0, places, grad.reshape(-1)).reshape(input_type.shape)


def _strided_places(like: Any, shape: Sequence[Any], size: tuple, stride: tuple,
                    offset: Any) -> Any:
    """Return the linear positions in a contiguous tensor of `shape`, in the order of the view."""
    linear = creation.iota(numel(shape), like)
    return as_strided_record(linear, size=size, stride=stride, offset=offset).reshape(-1)


def _write_strided(base: Any, src: Any, size: tuple, stride: tuple, offset: Any) -> Any:
    places = _strided_places(base, base.shape, size, stride, offset)
    flat = base.reshape(-1).index_put((places,), src.reshape(-1))
    return flat.reshape(tuple(base.shape))


as_strided_record: Op = Op(
    "as_strided", "movement", ("input",), views=True, view_inverse=_write_strided,
    infer=lambda input, size, stride, offset: typed(input, size),
    eager=_as_strided_eager,
    element=_as_strided_element,
    rules={"input": _as_strided_rule},
)  # fmt: skip


def _in_order_of_memory(input: Any) -> Any:
    """View all elements of a tensor contiguously, the dimensions of larger strides first."""
    if not hasattr(input, "is_contiguous") or input.is_contiguous():
        return input
    strides = [hint(s) for s in input.stride()]
    found = input.permute(sorted(range(len(strides)), key=lambda d: -strides[d]))
    if not found.is_contiguous():
        raise RuntimeError("as_strided: expected a tensor without gaps; call .contiguous() first")
    return found


@method()
def as_strided(input: Any, size: Sequence[Any], stride: Sequence[Any],
               storage_offset: Any = None) -> Any:
    """Return a strided view of the memory of a tensor, of shape `size`; strides and the offset
    count elements.

    RuntimeError where the elements of `input` leave gaps or lie on one another, or where the view
    would leave it. PyTorch would reach around `input` into its storage.

    >>> import tracejit
    >>> tracejit.as_strided(tracejit.arange(4), (2, 2), (1, 2))
    tensor([[0, 2],
            [1, 3]])
    """
    input = _in_order_of_memory(input)
    own = input.storage_offset() if hasattr(input, "storage_offset") else 0
    offset = 0 if storage_offset is None else as_size(storage_offset) - own
    sizes, steps = tuple(map(as_size, size)), tuple(map(as_size, stride))
    if len(sizes) != len(steps):
        raise RuntimeError("mismatch in length of strides and shape")
    last = offset + sum((n - 1) * s for n, s in zip(sizes, steps))
    if any(n < 0 for n in sizes):
        raise RuntimeError("Trying to create tensor with negative dimension "
                           f"{min(map(hint, sizes))}: {shape_text(sizes)}")
    if any(s < 0 for s in steps):
        raise RuntimeError("as_strided: Negative strides are not supported at the moment, got "
                           f"strides: {shape_text(steps)}")
    empty = any(n == 0 for n in sizes)
    if not empty and (offset < 0 or last >= numel(input.shape)):
        raise RuntimeError(f"setStorage: sizes {shape_text(sizes)}, strides {shape_text(steps)}, "
                           f"storage offset {hint(offset)} are out of bounds for a tensor of "
                           f"{hint(numel(input.shape))} elements")
    return as_strided_record(input, size=sizes, stride=steps, offset=offset)


@method()
def as_strided_scatter(input: Any, src: Any, size: Sequence[Any], stride: Sequence[Any],
                       storage_offset: Any = None) -> Any:
    """Return a copy of `input` whose `as_strided` view with these arguments is `src`.

    >>> import tracejit
    >>> tracejit.zeros(4).as_strided_scatter(tracejit.ones(2), (2,), (2,)).tolist()
    [1.0, 0.0, 1.0, 0.0]

    RuntimeError where `src` has another shape or the view would leave the tensor.
    """
    whole = input.clone()
    view = as_strided(whole, size, stride, storage_offset)
    must_fit_slice(src, tuple(view.shape))
    return _write_strided(whole, convert(src, input.dtype), tuple(map(as_size, size)),
                          tuple(map(as_size, stride)), as_size(storage_offset or 0))
