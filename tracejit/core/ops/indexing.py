"""Indexing: `x[key]` and `x[key] = value` with every kind of key PyTorch takes, and ops whose
result's size depends on values.

In: tensors, keys of ints, slices, None, Ellipsis, bool and integer tensors, lists, arrays. Out:
views where the key has only ints, slices, None and Ellipsis, else copies; for assignment, a write
through a view or `index_put`. Capture has to run ops with `dynamic` before it can go on.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.core.ops import expanded_writes, gather_scatter, overriding
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.composite import composite
from tracejit.core.ops.direct_calls import Direct
from tracejit.core.ops.fitting import as_written, fitting, fitting_tensor, is_int
from tracejit.core.ops.gather_scatter import index_select, is_mask
from tracejit.core.ops.movement import movedim
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise import convert, is_number, is_tensor, where
from tracejit.core.ops.pointwise_record import (
    beyond_int64,
    coerce,
    constant,
    in_a_word,
    must_be_tensors,
)
from tracejit.core.ops.rearranging import repeated_each
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import broadcast, equal, hint, normalize_dim, shape_text
from tracejit.core.ops.slicing import position, select_record, slice_along
from tracejit.core.ops.types import (
    COMPLEX,
    INTEGER,
    SCALAR_NAMES,
    TensorType,
    bool_,
    can_cast,
    int32,
    int64,
)

_getitem_direct = Direct("view", "getitem")
_HEAP_TYPE = 1 << 9
_MOST_ITEMS = 32  # of a list that counts as a tuple of keys


# -- keys -----------------------------------------------------------------------------------------


class Plan:
    """Parts of a key: `view` after its basic part, then tensors that index the view.

    mask  the last of the tensors that is a mask
    """

    __slots__ = ("view", "dims", "indices", "mask")

    def __init__(self, view: Any) -> None:
        self.view = view
        self.dims: list[int] = []
        self.indices: list[Any] = []
        self.mask: Any = None


def plan(input: Any, key: Any, reads: bool = False) -> Plan:
    """Apply the basic part of a key and collect the rest.

    Where it `reads`, integer tensors without dimensions are applied as well: like ints they give
    views.
    """
    items = list(key) if isinstance(key, tuple) or _several(key) else [key]
    items = [_as_tensor(input, item) for item in items]
    consumed = sum(map(_width, items))
    if not input.shape and consumed:
        raise IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                         "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number")
    if consumed > len(input.shape):
        raise IndexError(f"too many indices for tensor of dimension {len(input.shape)}")
    found, dim, source = Plan(input), 0, 0
    for item in items:
        if item is Ellipsis:
            skipped = len(input.shape) - consumed
            dim, source, consumed = dim + skipped, source + skipped, len(input.shape)
            continue
        dim = _apply_item(found, item, dim, source, reads)
        source += _width(item)
    return found


def _several(key: Any) -> bool:
    """Return True if a sequence is a key of several items, as a tuple is: NumPy's older rule."""
    if not isinstance(key, Sequence) or len(key) >= _MOST_ITEMS:
        return False
    several = any(item is None or item is Ellipsis
                  or is_tensor(item) and not getattr(item, "is_weak", False)
                  or isinstance(item, (slice, Sequence, np.ndarray)) for item in key)
    if several:
        warnings.warn("Using a non-tuple sequence for multidimensional indexing is deprecated and "
                      "will be changed in pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In "
                      "pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], "
                      "which will result either in an error or a different result",
                      UserWarning, stacklevel=4)
    return several


def _width(item: Any) -> int:
    """Return the number of the input's dimensions that an item of a key takes."""
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if is_tensor(item) and is_mask(item):
        return len(item.shape)
    return 1


def _as_tensor(input: Any, item: Any) -> Any:
    """Convert lists and arrays to tensors, NumPy integers to ints; IndexError for what is no
    index."""
    if item is None or item is Ellipsis or isinstance(item, (slice, int)):
        return item
    if isinstance(item, float):  # also one that is an input of a program
        raise _no_index(item)
    if is_tensor(item):
        return item if item.device == input.device else _near(input, item)
    if isinstance(item, (list, tuple, range)):
        return _of_sequence(input, item)
    if isinstance(item, np.ndarray):
        made = type(input).of_array(item).to(input.device)
        return made if is_mask(made) else convert(made, int64)
    if hasattr(item, "__index__"):
        return item.__index__()
    raise _no_index(item)


def _near(input: Any, index: Any) -> Any:
    """Return an index tensor on the input's device; those on the CPU may index tensors anywhere."""
    if index.device.type != "cpu":
        raise RuntimeError("indices should be either on cpu or on the same device as the indexed "
                           f"tensor ({input.device})")
    return index.to(input.device)


def _no_index(item: Any) -> IndexError:
    return IndexError("only integers, slices (`:`), ellipsis (`...`), None and long or byte "
                      f"Variables are valid indices (got {type(item).__name__})")


def _of_sequence(input: Any, items: Sequence[Any]) -> Any:
    """Make an index tensor of a sequence, even of numbers that only the program knows."""
    made = type(input).of_data(list(items))
    return (convert(made, int64) if 0 in made.shape else made).to(input.device)


def _apply_item(found: Plan, item: Any, dim: int, source: int, reads: bool) -> int:
    """Apply one item of a key at dimension `dim` of the view; return the dimension for the next
    one."""
    if item is None:
        found.view = found.view.unsqueeze(dim)
        return dim + 1
    if isinstance(item, bool):
        found.view = found.view.unsqueeze(dim)
        return _apply_mask(found, _truth(found.view, item), dim, source)
    if isinstance(item, int):
        found.view = _selected(found.view, dim, item, source)
        return dim
    if isinstance(item, slice):
        if any(x is not None and not hasattr(x, "__index__")
               for x in (item.start, item.stop, item.step)):
            raise TypeError("slice indices must be integers or None or have an __index__ method")
        if not _takes_all(item):
            found.view = slice_along(found.view, dim, item.start, item.stop, item.step)
        return dim + 1
    if not is_mask(item):
        if item.shape and item.dtype not in (int32, int64):
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        position = gather_scatter.as_index(item)
        if reads and not item.shape:
            found.view = _selected_by(found.view, dim, position, source)
            return dim
        if not item.shape:  # the gradient reads it, even if the tensor is written later
            position = position.clone()
        found.dims.append(dim)
        found.indices.append(position)
        return dim + 1
    if not item.shape:
        found.view = found.view.unsqueeze(dim)
        item = item.reshape(1)
    if item.dtype is not bool_:
        warnings.warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype "
                      "torch.bool instead.", UserWarning, stacklevel=4)
    return _apply_mask(found, convert(item, bool_), dim, source)


def _takes_all(key: slice) -> bool:
    return key.start is None and key.stop is None and (key.step is None or key.step == 1)


def _truth(like: Any, value: bool) -> Any:
    return like.new_full((1,), value, dtype=bool_)


def _apply_mask(found: Plan, mask: Any, dim: int, source: int) -> int:
    for k, size in enumerate(mask.shape):
        if not equal(size, found.view.shape[dim + k]):
            raise IndexError(f"The shape of the mask {shape_text(mask.shape)} at index {k} does "
                             f"not match the shape of the indexed tensor "
                             f"{shape_text(found.view.shape)} at index {source + k}")
    found.mask = mask
    found.dims.append(dim)
    found.indices.append(mask)
    return dim + len(mask.shape)


def _selected(view: Any, dim: int, index: Any, source: int) -> Any:
    place = position(index, view.shape[dim])
    if place is None:
        raise IndexError(f"index {hint(index)} is out of bounds for dimension {source} with size "
                         f"{hint(view.shape[dim])}")
    return select_record(view, dim=dim, index=place)


def _selected_by(view: Any, dim: int, index: Any, source: int) -> Any:
    """Return the view at a position that a tensor holds; on the meta device, a copy."""
    if "meta" in (view.device.type, index.device.type):
        return gather_scatter.read_at(view, dim, index)
    found = view._selected(dim, index)
    return _selected(view, dim, index.item(), source) if found is None else found


def _resolved(found: Plan) -> tuple[list[int], list[Any]]:
    """Return dimensions and integer index tensors; masks are replaced by the positions where they
    hold."""
    dims, indices = [], []
    for dim, index in zip(found.dims, found.indices):
        if index.dtype is bool_:
            positions = nonzero(index)
            for k in range(len(index.shape)):
                dims.append(dim + k)
                indices.append(positions.select(1, k))
        else:
            dims.append(dim)
            indices.append(index)
    return dims, indices


@method("__getitem__")
def getitem(input: Any, key: Any) -> Any:
    """Return `input[key]`, as PyTorch: a view for ints, slices, None and Ellipsis; else a copy.

    IndexError for a position out of range, ValueError for a step that is not positive.
    """
    seen = _getitem_direct.direct(input, key)
    if seen is not NotImplemented:
        return seen
    try:
        found = plan(input, key, reads=True)
    except Exception:
        return overriding.instead(getitem, (input, key), {})
    if not found.indices:
        if found.view is input:
            return slice_along(input, 0) if input.shape else input.reshape(())
        return found.view
    dims, indices = _resolved(found)
    result = gather_scatter.index(found.view, dims, indices)
    place, count = _place_of_indices(dims, indices)
    return movedim(result, tuple(range(count)), tuple(range(place, place + count))) if (
        place) else result


@method("__setitem__")
def setitem(input: Any, key: Any, value: Any) -> None:
    """Do `input[key] = value`: the value is broadcast, and converted to the tensor's dtype.

    TypeError for what is neither tensor nor number; RuntimeError for values of another dtype at the
    positions of index tensors.
    """
    if not is_tensor(value) and not _is_one_number(value):
        raise TypeError(f"can't assign a {_c_name(type(value))} to a "
                        f"tracejit.{SCALAR_NAMES[input.dtype.name]}Tensor")
    found = plan(input, key)
    view = found.view
    if is_int(value):
        value = _written_int(value, view.dtype)
    elif view.dtype.category == INTEGER:
        value = constant(value)  # a float must be known: not every one fits
    else:
        value = as_written(value, view.dtype)
    if not found.indices:
        if is_tensor(value):
            view._assign(_fitted(value, view), overwrites=True)
        else:
            view._assign(_constant(view, value))
        return
    if is_tensor(value) and not getattr(value, "is_weak", False):
        _must_fit(found, value)
    shared = expanded_writes.shared(view)
    if shared:
        _set_shared(found, shared, value)
        return
    if len(found.indices) == 1 and found.mask is not None:
        written = _masked(view, found.mask, found.dims[0], value)
        if written is not None:
            view._assign(written)
            return
    dims, indices = _resolved(found)
    src = _source(view, dims, indices, value)
    view._assign(gather_scatter.put(view, dims, indices, src, False))


def _is_single(x: Any) -> bool:
    return all(hint(n) == 1 and equal(n, 1) for n in x.shape)


def _must_fit(found: Plan, value: Any) -> None:
    """Raise RuntimeError for a value of another dtype, where it is not one number for a mask or a
    view.

    Index tensors without dimensions select a view, as ints do.
    """
    several = [x for x in found.indices if x.shape]
    if len(several) == 1 and several[0] is found.mask and _is_single(value):
        if value.dtype.category == COMPLEX and found.view.dtype.category < COMPLEX:
            raise RuntimeError("value cannot be converted to type "
                               f"{found.view.dtype.name} without overflow")
    elif several:
        _must_match(found.view, value)


def _must_match(input: Any, values: Any) -> None:
    if values.dtype is not input.dtype:
        raise RuntimeError("Index put requires the source and destination dtypes match, got "
                           f"{SCALAR_NAMES[input.dtype.name]} for the destination and "
                           f"{SCALAR_NAMES[values.dtype.name]} for the source.")


def _set_shared(found: Plan, shared: list[int], value: Any) -> None:
    """Assign to elements that share memory."""
    view = found.view
    expanded_writes.warn("index_put_")
    if len(found.indices) == 1 and found.mask is not None and not (
            is_tensor(value) and value.shape):
        rest = len(view.shape) - found.dims[0] - len(found.mask.shape)
        mask = found.mask.reshape((*found.mask.shape, *(1,) * rest))
        expanded_writes.fill(view, shared, mask, value, "masked_fill_")
        return
    dims, indices = _resolved(found)
    src = _source(view, dims, indices, value)
    expanded_writes.put(view, shared, dims, indices, src, False)


def _source(view: Any, dims: list[int], indices: list[Any], value: Any) -> Any:
    """Return what is written at the positions of a key, in the order of dimensions that `put`
    takes."""
    src = value if is_tensor(value) else _constant(view, value, ())
    most = len(view.shape) - len(dims) + max(len(i.shape) for i in indices)
    while len(src.shape) > most and hint(src.shape[0]) == 1 and equal(src.shape[0], 1):
        src = src.squeeze(0)
    place, count = _place_of_indices(dims, indices)
    if place:  # from where the key has them to the front, where `put` does
        shape = gather_scatter.indexed_shape(
            view.shape, broadcast(*[i.shape for i in indices]), tuple(dims))
        src = src.expand(*shape[count:count + place], *shape[:count], *shape[count + place:])
        src = movedim(src, tuple(range(place, place + count)), tuple(range(count)))
    return convert(src, view.dtype)


def _is_one_number(value: Any) -> bool:
    """Return True for a number to PyTorch: a Python number, or a NumPy integer, float64 or
    complex128."""
    if isinstance(value, (np.inexact, np.bool_)):
        return isinstance(value, (float, complex))
    return is_number(value) or is_int(value)


def _c_name(kind: type) -> str:
    """Return a type's name, with its module if the type is written in C."""
    in_python = kind.__flags__ & _HEAP_TYPE or kind.__module__ == "builtins"
    return kind.__name__ if in_python else f"{kind.__module__}.{kind.__name__}"


def _written_int(value: Any, dtype: Any) -> Any:
    value = in_a_word(value)
    if beyond_int64(value):
        raise ValueError("Overflow when unpacking long long")
    return as_written(value, dtype)


def _place_of_indices(dims: list[int], indices: list[Any]) -> tuple[int, int]:
    """Return where the index tensors' dimensions, first in a result, belong, and their number.

    (0, 0) if they are in place. Tensors without dimensions count as numbers, which take their
    dimension away before the others are looked at: `x[:, t, :, i]` has the dimension of `i` last.
    """
    apart = any(b - a != 1 for a, b in zip(dims, dims[1:]))
    taken = [d for d, i in zip(dims, indices) if not len(i.shape)]
    left = [d - sum(t < d for t in taken) for d in dims if d not in taken]
    if not apart or not taken or any(b - a != 1 for a, b in zip(left, left[1:])) or not left:
        return 0, 0
    return left[0], max(len(i.shape) for i in indices)


def _constant(view: Any, value: Any, shape: Any = None) -> Any:
    """Return a number, list or array as a tensor of the view's dtype."""
    if is_number(value):
        return view.new_full(tuple(view.shape) if shape is None else shape, value)
    array = np.asarray(value)
    made = convert(type(view).of_array(array).to(view.device), view.dtype)
    return made if shape is not None else _fitted(made, view)


def _fitted(value: Any, view: Any) -> Any:
    """Convert `value` to the view's dtype and shape; leading dimensions of size 1 are dropped."""
    value = convert(value, view.dtype)
    if not is_tensor(value):  # the conversion found a runtime number's value
        return _constant(view, value)
    while len(value.shape) > len(view.shape) and equal(value.shape[0], 1):
        value = value.squeeze(0)
    return value.expand(*view.shape)


def _masked(view: Any, mask: Any, dim: int, value: Any) -> Any | None:
    """Return the view with `value` where the mask holds; None if there is a value for each
    element."""
    rest = len(view.shape) - dim - len(mask.shape)
    if is_number(value):
        value = view.new_full((), value)
    if not is_tensor(value):
        return None
    sizes = tuple(value.shape)
    before, after = sizes[: max(len(sizes) - rest, 0)], sizes[max(len(sizes) - rest, 0):]
    if before and not (hint(before[-1]) == 1 and equal(before[-1], 1)):
        return None
    spread = (*before[:-1], *(1,) * len(mask.shape), *after) if before else sizes
    while len(spread) > len(view.shape) and hint(spread[0]) == 1 and equal(spread[0], 1):
        spread = spread[1:]
    if len(spread) > len(view.shape):
        return None
    wide = mask.reshape((*mask.shape, *(1,) * rest))
    if value.dtype is not view.dtype and _is_single(value):
        return where(wide, fitting_tensor(value.reshape(()), view.dtype), view)
    return where(wide, convert(value.reshape(spread), view.dtype), view)


_UPDATES = {operator.iadd: operator.add, operator.isub: operator.sub, operator.imul: operator.mul,
            operator.itruediv: operator.truediv}  # fmt: skip


def update_through_mask(input: Any, key: Any, operation: Any, value: Any) -> bool:
    """Do `input[key] op= value` for a mask and a number, without selecting; False for other keys.

    `operation` is one of the operator module's in-place functions. Called for captured functions,
    whose shapes then do not depend on the mask.

    >>> import operator, tracejit
    >>> x = tracejit.tensor([1.0, -1.0])
    >>> update_through_mask(x, x < 0, operator.imul, 3), x.tolist()
    (True, [1.0, -3.0])
    """
    compute = _UPDATES.get(operation)
    if type(key) is tuple and len(key) == 1:
        (key,) = key
    if compute is None or not is_number(value) or not is_tensor(key) or not is_mask(key):
        return False
    if operation is not operator.iadd and operation is not operator.isub and not (
            math.isfinite(value) and (value or operation is operator.imul)):
        return False  # elements that are not selected would take part in gradients
    found = plan(input, key)
    result = compute(found.view, value)
    if not can_cast(result.dtype, input.dtype):
        return False
    rest = len(found.view.shape) - len(found.mask.shape)
    wide = found.mask.reshape((*found.mask.shape, *(1,) * rest))
    written = where(wide, convert(result, input.dtype), found.view)
    found.view._assign(written)
    return True


# -- by value -------------------------------------------------------------------------------------


nonzero_record: Op = Op(
    "nonzero", "extern", ("input",),
    dynamic="keep the shape: tracejit.where(mask, x, 0), x.masked_fill(...), or sums weighted by "
            "the mask",
    infer=lambda input: TensorType(int64, (None, len(input.shape)), input.device),
    eager=lambda xp, x: xp.argwhere(x).astype(xp.int64),
)  # fmt: skip


def _positions(xp: Any, repeats: Any) -> Any:
    if repeats.size and repeats.min() < 0:
        raise RuntimeError("repeats can not be negative")
    return xp.repeat(xp.arange(repeats.shape[0]), repeats)


repeat_positions_record: Op = Op(
    "repeat_positions", "extern", ("repeats",),
    dynamic="repeat by a number, or gather at positions that were computed outside",
    infer=lambda repeats: TensorType(int64, (None,), repeats.device),
    eager=_positions,
)  # fmt: skip


@method()
def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """Return positions of the elements that are not zero, (n, ndim) int64, or a tuple of ndim
    vectors.

    >>> import tracejit
    >>> tracejit.tensor([0, 3, 4]).nonzero().tolist()
    [[1], [2]]
    """
    if not as_tuple:
        return nonzero_record(input)
    positions = nonzero_record(input if input.shape else input.reshape(1))
    return tuple(positions.select(1, k) for k in range(positions.shape[1]))


argwhere = method("argwhere")(lambda input: nonzero_record(input))
argwhere.__doc__ = """Return the positions of the elements that are not 0: (n, dimensions), int64.

    >>> import tracejit
    >>> tracejit.argwhere(tracejit.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """


@method()
def masked_select(input: Any, mask: Any) -> Any:
    """Return the elements where `mask` holds, in a vector; input and mask broadcast together.

    >>> import tracejit
    >>> x = tracejit.arange(4)
    >>> x.masked_select(x > 1).tolist()
    [2, 3]
    """
    must_be_tensors("masked_select", ("mask",), (mask,))
    if mask.dtype is not bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = broadcast(input.shape, mask.shape)
    return getitem(input.expand(*shape), mask.expand(*shape))


masked_fill_record: Op = composite(
    "masked_fill", ("input", "mask", "value"),
    lambda input, mask, value: convert(where(mask, value, input), input.dtype),
    infer=lambda input, mask, value: TensorType(
        input.dtype, broadcast(tuple(mask.shape), tuple(input.shape)), input.device),
    input=lambda grad, mask: where(mask, 0, grad),
    value=lambda grad, mask: where(mask, grad, 0))


@method()
def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """Return `input` with `value` (a number or 0-dim tensor) where `mask` holds.

    >>> import tracejit
    >>> x = tracejit.arange(3)
    >>> x.masked_fill(x == 1, 9).tolist()
    [0, 9, 2]
    """
    if mask.dtype is not bool_:
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype "
                           f"{mask.dtype}")
    value = fitting(value, input.dtype)
    if is_tensor(value):
        if value.dtype.category == COMPLEX and input.dtype.category < COMPLEX:
            raise RuntimeError(f"value of dtype {value.dtype} cannot be converted to "
                               f"{input.dtype} without overflow")
        if value.shape:
            raise RuntimeError("masked_fill_ only supports a 0-dimensional value tensor, but got "
                               f"tensor with {len(value.shape)} dimension(s).")
        value = fitting_tensor(value, input.dtype)
    elif not is_int(value):
        value = coerce(value, input.dtype)
    return masked_fill_record(input, mask, value)


@method()
@autocasts(cuda="widest")
def index_put(input: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """Return `input` with `values` written (or added) at index tensors for its first dimensions.

    >>> import tracejit
    >>> x = tracejit.zeros(3)
    >>> x.index_put((tracejit.tensor([0, 2]),), tracejit.ones(2)).tolist()
    [1.0, 0.0, 1.0]
    """
    dims, places = _places_to_put(input, indices, values)
    return gather_scatter.put(input, dims, places, values, accumulate)


def _places_to_put(input: Any, indices: Sequence[Any], values: Any) -> tuple[list, list]:
    found = plan(input, tuple(indices))
    _must_match(input, values)
    return _resolved(found)


def put_shared(input: Any, shared: Sequence[int], indices: Sequence[Any], values: Any,
               accumulate: bool = False) -> Any:
    """Do `input.index_put_`, where elements share memory along these dimensions."""
    expanded_writes.warn("index_put_")
    dims, places = _places_to_put(input, indices, values)
    return expanded_writes.put(input, shared, dims, places, values, accumulate)


@method()
def repeat_interleave(input: Any, repeats: Any = None, dim: int | None = None, *,
                      output_size: Any = None) -> Any:
    """Repeat each element in a row, `repeats` times or as often as a vector says.

    Given a vector alone, repeat position k as often as its element k says.
    `output_size`: the size of the result along `dim`; RuntimeError where it is another.

    >>> import tracejit
    >>> tracejit.arange(2).repeat_interleave(2).tolist()
    [0, 0, 1, 1]
    """
    if repeats is None:
        if len(input.shape) != 1:
            raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
        positions = convert(repeat_positions_record(_counts(input)), input.dtype)
        return _sized(positions, 0, output_size)
    if dim is None:
        return repeat_interleave(input.reshape(-1), repeats, 0, output_size=output_size)
    k = normalize_dim(dim, len(input.shape))
    if is_number(repeats):
        if repeats < 0:
            raise RuntimeError("Repeats must be non-negative")
        return _sized(repeated_each(input, repeats, k), k, output_size)
    counts = _counts(repeats).reshape(-1)
    if equal(counts.shape[0], 1):
        counts = counts.expand(input.shape[k])
    if not equal(counts.shape[0], input.shape[k]):
        raise RuntimeError("repeats must have the same size as input along dim, but got "
                           f"repeats.size(0) = {hint(counts.shape[0])} and input.size({k}) = "
                           f"{hint(input.shape[k])}")
    return _sized(index_select(input, k, repeat_positions_record(counts)), k, output_size)


def _counts(repeats: Any) -> Any:
    if repeats.dtype.category != INTEGER:
        raise NotImplementedError("\"repeat_interleave_cpu\" not implemented for "
                                  f"'{SCALAR_NAMES[repeats.dtype.name]}'")
    return repeats


def _sized(result: Any, dim: int, output_size: Any) -> Any:
    if output_size is not None and not equal(result.shape[dim], output_size):
        raise RuntimeError("allocated size does not match required size")
    return result

