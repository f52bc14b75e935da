"""Views: the same elements under another shape, and how a write through a view reaches its base.

In: tensors, sizes (ints or symbolic), dimension numbers. Out: tensors that share memory with their
operand where PyTorch's do (`reshape` copies when it must). Called by users, by gradient rules, and
by indexing. `view_inverse` of a record tells capture and autograd how an in-place write on a view
becomes a new value of the whole.

`element` functions map an output index to the operand's. Lowering composes and simplifies them, so
a chain of views costs nothing in a kernel.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tracejit.core.ops import overriding
from tracejit.core.ops.direct_calls import Direct
from tracejit.core.ops.operators import Operators, method
from tracejit.core.ops.pointwise_record import must_be_tensors
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import (
    as_size,
    broadcast_dims,
    check_expanded_dims,
    check_expands,
    counted,
    equal,
    hint,
    is_one,
    normalize_dim,
    normalize_dims,
    numel,
    same_structure,
    shape_text,
)  # fmt: skip
from tracejit.core.ops.types import TensorType, asked_dtype
from tracejit.core.ops.types import dtype as element_type

_reshape_direct, _transpose_direct, _t_direct, _permute_direct, _unsqueeze_direct = (
    Direct("view", name) for name in ("reshape", "transpose", "t", "permute", "unsqueeze"))


def typed(input: Any, shape: Iterable[Any]) -> TensorType:
    """Return the type of `input` under another shape."""
    return TensorType(input.dtype, tuple(shape), input.device)


def given(sizes: tuple, named: Any = None) -> tuple:
    """Return `(2, 3)` from the arguments `2, 3` or `(2, 3)`, or from a named argument."""
    if named is not None:
        return given((*sizes, named))
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    return tuple(as_size(s) for s in sizes)


# -- reshape ------------------------------------------------------------------------------------


def _reshape_type(input: Any, shape: tuple) -> TensorType:
    if not equal(numel(shape), numel(input.shape)):
        raise RuntimeError(f"shape '{shape_text(shape)}' is invalid for input of size "
                           f"{hint(numel(input.shape))}")
    return typed(input, shape)


def _reshape_element(emit: Any, index: Sequence[Any], shape: tuple) -> Any:
    return emit.operand(0, reshaped_index(index, shape, emit.shape(0)))


def reshaped_index(index: Sequence[Any], shape: Sequence[Any], operand: Sequence[Any]) -> list[Any]:
    """Map `index` of `shape` to the index in `operand`, a shape of as many elements."""
    result: list[Any] = [0] * len(operand)
    if any(type(size) is int and size == 0 for size in operand):
        return result  # no element to find
    for ours, theirs in _aligned(shape, operand):
        linear: Any = index[ours[0]] if ours else 0
        for d in ours[1:]:
            linear = linear * shape[d] + index[d]
        for d in reversed(theirs[1:]):
            result[d] = linear % operand[d]
            linear = linear // operand[d]
        if theirs:
            result[theirs[0]] = linear
    return result


def _aligned(a: Sequence[Any], b: Sequence[Any]) -> list[tuple[list[int], list[int]]]:
    """Group the dimensions of two shapes by equal numbers of elements, as finely as is known."""
    left = [d for d, size in enumerate(a) if not is_one(size)]
    right = [d for d, size in enumerate(b) if not is_one(size)]
    groups, i, j = [], 0, 0
    for k in range(len(left)):
        product = numel(a[d] for d in left[i:k + 1])
        for m in range(j, len(right)):
            if same_structure(product, numel(b[d] for d in right[j:m + 1])):
                groups.append((left[i:k + 1], right[j:m + 1]))
                i, j = k + 1, m + 1
                break
    if i < len(left) or j < len(right):
        groups.append((left[i:], right[j:]))
    return groups


reshape_record: Op = Op(
    "reshape", "movement", ("input",), views=True,
    view_inverse=lambda base, src, shape: src.reshape(tuple(base.shape)), sizes=("shape",),
    infer=_reshape_type,
    eager=lambda xp, x, shape: x.reshape(shape),
    element=_reshape_element,
    rules={"input": lambda grad, input_type: grad.reshape(input_type.shape)},
    node_name="ViewBackward0",
)  # fmt: skip


def resolved(shape: tuple, input: Any) -> tuple:
    """Replace a -1 in `shape` by the size that is left of the input's elements."""
    shape = tuple(map(counted, shape))
    unknown = [k for k, size in enumerate(shape) if type(size) is int and size == -1]
    if len(unknown) > 1:
        raise RuntimeError("only one dimension can be inferred")
    for size in shape:
        if type(size) is int and size < -1:
            raise RuntimeError(f"invalid shape dimension {size}")
    if not unknown:
        return shape
    total = numel(input.shape)
    known = numel(s for k, s in enumerate(shape) if k != unknown[0])
    if known == 0:
        raise RuntimeError(f"cannot reshape tensor of 0 elements into shape {shape_text(shape)} "
                           "because the unspecified dimension size -1 can be any value and is "
                           "ambiguous")
    if not equal(total % known, 0):
        raise RuntimeError(f"shape '{shape_text(shape)}' is invalid for input of size "
                           f"{hint(total)}")
    return (*shape[:unknown[0]], total // known, *shape[unknown[0] + 1:])


@method()
def reshape(input: Any, *sizes: Any, shape: Any = None) -> Any:
    """Return the same elements in row-major order under another shape; one size may be -1.

    A view where strides allow it, else a copy. RuntimeError if the number of elements differs.

    >>> import tracejit
    >>> tracejit.arange(6).reshape(2, -1).shape
    tracejit.Size([2, 3])
    """
    try:
        if shape is None:
            found = _reshape_direct.direct(input, *sizes)
            if found is not NotImplemented:
                return found
        return reshape_record(input, shape=resolved(given(sizes, shape), input))
    except Exception:
        return overriding.instead(reshape, (input, *sizes), {} if shape is None else {
            "shape": shape})


@method()
def view(input: Any, *shape: Any, size: Any = None, dtype: Any = None) -> Any:
    """Reshape without a copy, gradients included: RuntimeError where strides do not allow a view.

    `view(dtype)` reads the same bytes as elements of another type, see `reinterpret`.

    >>> import tracejit
    >>> tracejit.zeros(2, 3).view(-1).shape
    tracejit.Size([6])
    """
    if size is None and dtype is None:
        found = _reshape_direct.direct(input, *shape)
        if found is not NotImplemented:
            return found
    if dtype is not None or len(shape) == 1 and isinstance(shape[0], (element_type, type)):
        from tracejit.core.ops.reinterpret import reinterpreted

        return reinterpreted(input, asked_dtype(shape[0] if dtype is None else dtype))
    sizes = resolved(given(shape, size), input)
    if hasattr(input, "stride") and not _viewable(input, sizes):
        raise RuntimeError("view size is not compatible with input tensor's size and stride (at "
                           "least one dimension spans across two contiguous subspaces). Use "
                           ".reshape(...) instead.")
    return reshape_record(input, shape=sizes)


def _viewable(input: Any, target: tuple) -> bool:
    """Return True if NumPy can view the layout as `target`; ask a tensor of symbolic size."""
    shape = tuple(input.shape)
    if any(type(s) is not int for s in (*shape, *target)):
        return not equal(numel(shape), numel(target)) or input._can_view(target)
    if numel(shape) == 0 or numel(shape) != numel(target):
        return True  # no elements, or a wrong number of them, which `infer` reports
    strides = input.stride()
    if any(type(s) is not int for s in strides):
        return bool(input._can_view(target))
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if stride != step:
            break
        step *= size
    else:
        return True  # contiguous
    layout = np.lib.stride_tricks.as_strided(np.empty(1, np.int8), shape, strides, writeable=False)
    return reshaped_view(layout, target) is not None


_CAN_REFUSE = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


def reshaped_view(array: np.ndarray, shape: tuple) -> np.ndarray | None:
    """Return the array's memory in another shape; None where that takes a copy.

    NumPy 2.0 has no `reshape(copy=False)`; from 2.5 on it warns of shapes that are assigned.
    """
    try:
        if _CAN_REFUSE:
            return np.reshape(array, shape, copy=False)
        seen: np.ndarray = array.view()
        seen.shape = shape
    except (ValueError, AttributeError):
        return None
    return seen


@method()
def view_as(input: Any, other: Any) -> Any:
    """Return `view` in the shape of `other`.

    >>> import tracejit
    >>> tracejit.zeros(2, 3).view_as(tracejit.zeros(6)).shape
    tracejit.Size([6])
    """
    must_be_tensors("view_as", ("other",), (other,))
    return view(input, *other.shape)


@method()
def reshape_as(input: Any, other: Any) -> Any:
    """Return `reshape` in the shape of `other`.

    >>> import tracejit
    >>> tracejit.zeros(2, 3).reshape_as(tracejit.zeros(6)).shape
    tracejit.Size([6])
    """
    must_be_tensors("reshape_as", ("other",), (other,))
    return reshape(input, *other.shape)


@method()
def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Join dimensions `start_dim` to `end_dim` into one.

    >>> import tracejit
    >>> tracejit.zeros(2, 3, 4).flatten(1).shape
    tracejit.Size([2, 12])
    """
    ndim = len(input.shape)
    first, last = normalize_dim(start_dim, ndim), normalize_dim(end_dim, ndim)
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == last and ndim:
        return input
    sizes = tuple(input.shape)
    return reshape(input, *sizes[:first], numel(sizes[first:last + 1]), *sizes[last + 1:])


@method()
def ravel(input: Any) -> Any:
    """Return all elements in one dimension: a view of `input` if it is contiguous, else a copy.

    >>> import tracejit
    >>> tracejit.zeros(2, 3).ravel().shape
    tracejit.Size([6])
    """
    return view(input.contiguous(), -1)


@method()
def unflatten(input: Any, dim: int, sizes: Sequence[Any]) -> Any:
    """Split dimension `dim` into several of the given sizes, a view; one may be -1.

    >>> import tracejit
    >>> tracejit.zeros(2, 6).unflatten(1, (2, -1)).shape
    tracejit.Size([2, 2, 3])
    """
    k = normalize_dim(dim, len(input.shape))
    part = resolved(given(tuple(sizes)), typed(input, (input.shape[k],)))
    return view(input, *input.shape[:k], *part, *input.shape[k + 1:])


# -- permute, unsqueeze, squeeze, expand ----------------------------------------------------------


def _permuted_index(index: Sequence[Any], dims: tuple[int, ...]) -> list[Any]:
    result = [None] * len(dims)
    for place, dim in enumerate(dims):
        result[dim] = index[place]
    return result


def _inverse_permutation(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dims.index(k) for k in range(len(dims)))


permute_record: Op = Op(
    "permute", "movement", ("input",), views=True,
    view_inverse=lambda base, src, dims: permute_record(src, dims=_inverse_permutation(dims)),
    infer=lambda input, dims: typed(input, (input.shape[d] for d in dims)),
    eager=lambda xp, x, dims: x.transpose(dims),
    element=lambda emit, index, dims: emit.operand(0, _permuted_index(index, dims)),
    rules={"input": lambda grad, dims: permute_record(grad, dims=_inverse_permutation(dims))},
)  # fmt: skip


@method()
def permute(input: Any, *order: Any, dims: Any = None) -> Any:
    """Put the dimensions in another order.

    >>> import tracejit
    >>> tracejit.zeros(2, 3, 4).permute(2, 0, 1).shape
    tracejit.Size([4, 2, 3])
    """
    if dims is None:
        found = _permute_direct.direct(input, *order)
        if found is not NotImplemented:
            return found
    ndim = len(input.shape)
    order = tuple(normalize_dim(d, ndim) for d in given(order, dims))
    if len(order) != ndim:
        raise RuntimeError("permute(sparse_coo): number of dimensions in the tensor input does not "
                           "match the length of the desired ordering of dimensions i.e. "
                           f"input.dim() = {ndim} is not equal to len(dims) = {len(order)}")
    if len(set(order)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return permute_record(input, dims=order)


@method("transpose", "swapdims")
def transpose(input: Any, dim0: Any, dim1: int | None = None) -> Any:
    """Exchange two dimensions.

    dim0  an int; or, without `dim1`, all dimensions in their new order: NumPy's `transpose` and
          libraries for any kind of array call it so

    >>> import tracejit
    >>> tracejit.zeros(2, 3).transpose(0, 1).shape
    tracejit.Size([3, 2])
    """
    found = _transpose_direct.direct(input, dim0, dim1)
    if found is not NotImplemented:
        return found
    if dim1 is None:
        if not isinstance(dim0, (tuple, list)):
            raise TypeError("transpose() missing 1 required positional argument: 'dim1'")
        return permute(input, dim0)
    try:
        ndim = len(input.shape)
        a, b = normalize_dim(dim0, ndim), normalize_dim(dim1, ndim)
    except Exception:
        return overriding.instead(transpose, (input, dim0, dim1), {})
    order = list(range(ndim))
    if ndim:
        order[a], order[b] = b, a
    return permute_record(input, dims=tuple(order))


swapdims = transpose


@method()
def swapaxes(input: Any, axis0: int, axis1: int) -> Any:
    """Call `transpose`, under NumPy's name: two dimensions change places.

    >>> import tracejit
    >>> tracejit.zeros(2, 3).swapaxes(0, 1).shape
    tracejit.Size([3, 2])
    """
    return transpose(input, axis0, axis1)


@method()
def t(input: Any) -> Any:
    """Transpose a matrix, a view; vectors and scalars are unchanged. RuntimeError for more
    dimensions.

    >>> import tracejit
    >>> tracejit.zeros(2, 3).t().shape
    tracejit.Size([3, 2])
    """
    found = _t_direct.direct(input)
    if found is not NotImplemented:
        return found
    ndim = len(input.shape)
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    return permute_record(input, dims=tuple(reversed(range(ndim))))


def _reversed(input: Any) -> Any:
    """Return all dimensions in reverse order, a view.

    >>> import tracejit
    >>> tracejit.zeros(2, 3).T.shape
    tracejit.Size([3, 2])
    """
    return permute_record(input, dims=tuple(reversed(range(len(input.shape)))))


def _matrix_transposed(input: Any) -> Any:
    """Exchange the last two dimensions, a view: (*, m, n) gives (*, n, m).

    >>> import tracejit
    >>> tracejit.zeros(5, 2, 3).mT.shape
    tracejit.Size([5, 3, 2])
    """
    if not input.shape:
        warnings.warn("Tensor.mT is deprecated on 0-D tensors. This function is the identity in "
                      "these cases.", stacklevel=2)
        return input
    if len(input.shape) < 2:
        raise RuntimeError("tensor.mT is only supported on matrices or batches of matrices. Got "
                           f"{len(input.shape)}-D tensor.")
    return transpose(input, -2, -1)


Operators.T = property(_reversed)  # type: ignore[attr-defined]
Operators.mT = property(_matrix_transposed)  # type: ignore[attr-defined]


@method()
def movedim(input: Any, source: Any, destination: Any) -> Any:
    """Move dimensions `source` to places `destination`; the others keep their order. A view.

    >>> import tracejit
    >>> tracejit.zeros(2, 3, 4).movedim(0, -1).shape
    tracejit.Size([3, 4, 2])
    """
    ndim = len(input.shape)
    sources = [normalize_dim(d, ndim) for d in _listed(source)]
    places = [normalize_dim(d, ndim) for d in _listed(destination)]
    if len(sources) != len(places):
        raise RuntimeError("movedim: Invalid source or destination dims: source and destination "
                           "must have the same number of elements")
    if len(set(sources)) != len(sources) or len(set(places)) != len(places):
        which = "source" if len(set(sources)) != len(sources) else "destination"
        given = ", ".join(map(str, _listed(source if which == "source" else destination)))
        raise RuntimeError(f"movedim: repeated dim in `{which}` ([{given}])")
    rest = iter(d for d in range(ndim) if d not in sources)
    order = [sources[places.index(k)] if k in places else next(rest) for k in range(ndim)]
    return permute_record(input, dims=tuple(order))


moveaxis = method("moveaxis")(movedim)


def _listed(dims: Any) -> list[int]:
    return list(dims) if isinstance(dims, (tuple, list)) else [dims]


def _without(sizes: Sequence[Any], dims: tuple[int, ...]) -> list[Any]:
    return [size for d, size in enumerate(sizes) if d not in dims]


def _unsqueeze_all(input: Any, dims: Sequence[int]) -> Any:
    for dim in sorted(dims):
        input = unsqueeze_record(input, dim=dim)
    return input


_MOST_DIMENSIONS = 64  # of NumPy's arrays


def _unsqueeze_eager(xp: Any, x: Any, dim: int) -> Any:
    if x.flags.c_contiguous or x.ndim == _MOST_DIMENSIONS:  # expand_dims raises for one more
        return xp.expand_dims(x, dim)
    # PyTorch's stride of the new dimension: that of all of the next one.
    step = x.shape[dim] * x.strides[dim] if dim < x.ndim else x.itemsize
    return _strided(xp, x, (*x.shape[:dim], 1, *x.shape[dim:]),
                    (*x.strides[:dim], step, *x.strides[dim:]))


def _strided(xp: Any, x: Any, shape: tuple, strides: tuple) -> Any:
    """Return `x` with these strides: dimensions of size 1 have PyTorch's, not NumPy's."""
    return xp.lib.stride_tricks.as_strided(x, shape, strides)


unsqueeze_record: Op = Op(
    "unsqueeze", "movement", ("input",), views=True,
    view_inverse=lambda base, src, dim: squeeze_record(src, dims=(dim,)),
    infer=lambda input, dim: typed(input, (*input.shape[:dim], 1, *input.shape[dim:])),
    eager=_unsqueeze_eager,
    element=lambda emit, index, dim: emit.operand(0, _without(index, (dim,))),
    rules={"input": lambda grad, dim: squeeze_record(grad, dims=(dim,))},
)  # fmt: skip


def _squeeze_element(emit: Any, index: Sequence[Any], dims: tuple[int, ...]) -> Any:
    rest = iter(index)
    return emit.operand(0, [0 if d in dims else next(rest) for d in range(len(emit.shape(0)))])


def _squeeze_type(input: Any, dims: tuple[int, ...]) -> TensorType:
    if not all(equal(input.shape[d], 1) for d in dims):
        raise RuntimeError(f"shape {shape_text(input.shape)} cannot be squeezed in {dims}")
    return typed(input, _without(input.shape, dims))


squeeze_record: Op = Op(
    "squeeze", "movement", ("input",), views=True,
    view_inverse=lambda base, src, dims: _unsqueeze_all(src, dims),
    infer=_squeeze_type,
    eager=lambda xp, x, dims: x.squeeze(dims),
    element=_squeeze_element,
    rules={"input": lambda grad, dims: _unsqueeze_all(grad, dims)},
)  # fmt: skip


@method()
def unsqueeze(input: Any, dim: int) -> Any:
    """Insert a dimension of size 1 at `dim`.

    >>> import tracejit
    >>> tracejit.zeros(2, 3).unsqueeze(-1).shape
    tracejit.Size([2, 3, 1])
    """
    found = _unsqueeze_direct.direct(input, dim)
    if found is not NotImplemented:
        return found
    return unsqueeze_record(input, dim=normalize_dim(dim, len(input.shape) + 1))


@method()
def squeeze(input: Any, dim: Any = None) -> Any:
    """Remove the dimensions of size 1 (of those in `dim`, where given).

    >>> import tracejit
    >>> tracejit.zeros(1, 2, 1).squeeze().shape
    tracejit.Size([2])
    """
    ndim = len(input.shape)
    asked = range(ndim) if dim is None else normalize_dims(dim, ndim) if dim != () else ()
    dims = tuple(d for d in asked if d < ndim and equal(input.shape[d], 1))
    return squeeze_record(input, dims=dims)


def _expand_type(input: Any, shape: tuple) -> TensorType:
    check_expands(input.shape, shape)
    return typed(input, shape)


def _expand_element(emit: Any, index: Sequence[Any], shape: tuple) -> Any:
    operand = emit.shape(0)
    lead = len(shape) - len(operand)
    repeated = broadcast_dims(shape, operand)
    return emit.operand(0, [0 if lead + k in repeated else index[lead + k]
                            for k in range(len(operand))])


def _expand_eager(xp: Any, x: Any, shape: tuple) -> Any:
    found = xp.broadcast_to(x, shape)
    if 1 not in shape or found.flags.c_contiguous:
        return found
    strides, lead, step = list(found.strides), len(shape) - x.ndim, 0
    for d in reversed(range(len(shape))):
        if shape[d] == 1:
            strides[d] = x.strides[d - lead] if d >= lead else step
        step = shape[d] * strides[d]
    return _strided(xp, found, shape, tuple(strides))


expand_direct = Direct("view", "expand")
expand_record: Op = Op(
    "expand", "movement", ("input",), views=True,
    view_inverse=lambda base, src, shape: _unexpand(base, src, shape), sizes=("shape",),
    infer=_expand_type,
    eager=_expand_eager,
    element=_expand_element,
    rules={"input": lambda grad: grad},  # un-broadcasting is the caller's, as for every op
)  # fmt: skip


@method()
def expand(input: Any, *sizes: Any, size: Any = None) -> Any:
    """Repeat dimensions of size 1 without a copy; -1 keeps a size.

    >>> import tracejit
    >>> tracejit.zeros(3, 1).expand(-1, 4).shape
    tracejit.Size([3, 4])
    """
    if size is None:
        found = expand_direct.direct(input, *sizes)
        if found is not NotImplemented:
            return found
    target = tuple(map(counted, given(sizes, size)))
    lead = check_expanded_dims(input.shape, target)
    shape = []
    for k, extent in enumerate(target):
        keep = type(extent) is int and extent == -1
        if keep and k < lead:
            raise RuntimeError(f"The expanded size of the tensor (-1) isn't allowed in a leading, "
                               f"non-existing dimension {k}")
        shape.append(input.shape[k - lead] if keep else extent)
    return expand_record(input, shape=tuple(shape))


@method()
def expand_as(input: Any, other: Any) -> Any:
    """Return `expand` to the shape of `other`.

    >>> import tracejit
    >>> tracejit.zeros(3, 1).expand_as(tracejit.zeros(3, 4)).shape
    tracejit.Size([3, 4])
    """
    must_be_tensors("expand_as", ("other",), (other,))
    return expand(input, *other.shape)


@method()
def broadcast_to(input: Any, *sizes: Any, size: Any = None) -> Any:
    """Call `expand`, under NumPy's name.

    >>> import tracejit
    >>> tracejit.ones(3).broadcast_to(2, 3).shape
    tracejit.Size([2, 3])
    """
    return expand(input, *given(sizes, size))


# -- writing through a view -----------------------------------------------------------------------


def _unexpand(base: Any, src: Any, shape: tuple) -> Any:
    if broadcast_dims(shape, base.shape) and not same_structure(numel(shape), numel(base.shape)):
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor "
                           "refers to a single memory location. Please clone() the tensor before "
                           "performing the operation.")
    return src.reshape(tuple(base.shape))
