"""Reading and writing at computed positions: advanced indexing, gather, scatter.

In: tensors and int64 index tensors. Out: what is read (kind "movement", so it fuses), or a copy of
the first operand with something written or added (kind "scatter": one order, so results are
deterministic). Called by `indexing.py`, by users, by gradient rules: reading and adding are each
other's derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.ops import creation, index_checks
from tracejit.core.ops.array_sums import add_at
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.fitting import fitting, fitting_tensor, plain_number
from tracejit.core.ops.movement import typed
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise import convert, is_tensor, where
from tracejit.core.ops.pointwise_record import must_be_tensors
from tracejit.core.ops.record import Op, Scatter
from tracejit.core.ops.shapes import broadcast, equal, hint, normalize_dim, numel, shape_text
from tracejit.core.ops.types import INTEGER, SCALAR_NAMES, TensorType, bool_, int32, int64, uint8

OUT_OF_BOUNDS = "index {} is out of bounds for dimension {} with size {}"
OUT_OF_RANGE = "index out of range in self"
_ERRORS = {
    "index": lambda bad, dim, size: RuntimeError(OUT_OF_BOUNDS.format(bad, dim, size)),
    "target": lambda bad, dim, size: IndexError(f"Target {bad} is out of bounds."),
    "class": lambda bad, dim, size: RuntimeError(
        f"Class values must be {'non-negative' if bad < 0 else 'smaller than num_classes'}."),
}  # fmt: skip


def zeros_for(like: Any, kind: TensorType) -> Any:
    return creation.zeros_of(like, kind._replace(dtype=like.dtype))


def as_index(index: Any) -> Any:
    """Return an index tensor as int64."""
    if index.dtype.category != INTEGER:
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return convert(index, int64)


# -- index: input[..., i, j, ...] with integer tensors ---------------------------------------------


def _place(dims: tuple[int, ...]) -> int:
    """Return where the index tensors' own dimensions stand in the result: in place, or first."""
    return dims[0] if dims[-1] - dims[0] + 1 == len(dims) else 0


def indexed_shape(shape: Sequence[Any], common: Sequence[Any], dims: tuple[int, ...]) -> tuple:
    """Return the shape of `input[indices]` for index tensors of shape `common`."""
    rest = [size for d, size in enumerate(shape) if d not in dims]
    return (*rest[:_place(dims)], *common, *rest[_place(dims):])


def _index_type(input: Any, *indices: Any, dims: tuple[int, ...], wrap: bool) -> TensorType:
    return typed(input, indexed_shape(input.shape, indices[0].shape, dims))


def element_index(emit: Any, index: Sequence[Any], dims: tuple[int, ...], wrap: bool,
                   first: int) -> list[Any]:
    """Return the position in the input of a result's element; operands from `first` on are the
    indices."""
    shape, start, rank = emit.shape(0), _place(dims), len(emit.shape(first))
    own, rest = index[start:start + rank], iter([*index[:start], *index[start + rank:]])
    place = []
    for d, size in enumerate(shape):
        if d not in dims:
            place.append(next(rest))
            continue
        k = first + dims.index(d)
        message = OUT_OF_BOUNDS.format("", d, "") if wrap else OUT_OF_RANGE
        place.append(emit.checked(emit.to_index(emit.operand(k, own)), size, message, wrap=wrap))
    return place


def _key(x: Any, indices: Sequence[Any], dims: tuple[int, ...], wrap: bool) -> tuple:
    """Return the NumPy index; IndexError for positions outside. `wrap` allows negative ones."""
    key: list[Any] = [slice(None)] * x.ndim
    for d, index in zip(dims, indices):
        if index.size:
            low, high = int(index.min()), int(index.max())
            if high >= x.shape[d] or low < (-x.shape[d] if wrap else 0):
                bad = high if high >= x.shape[d] else low
                raise IndexError(OUT_OF_BOUNDS.format(bad, d, x.shape[d]) if wrap else OUT_OF_RANGE)
        key[d] = index
    return tuple(key)


def _reads_nothing(x: Any, indices: Sequence[Any], dims: tuple[int, ...], wrap: bool) -> bool:
    """Return True if no element is read: PyTorch and kernels then check no position.

    An index without dimensions selects, which checks it.
    """
    return wrap and indices[0].ndim > 0 and 0 in indexed_shape(x.shape, indices[0].shape, dims)


def index_eager(xp: Any, x: Any, *indices: Any, dims: tuple[int, ...], wrap: bool) -> Any:
    if _reads_nothing(x, indices, dims, wrap):
        return xp.empty(indexed_shape(x.shape, indices[0].shape, dims), x.dtype)
    key = _key(x, indices, dims, wrap)
    if len(dims) == 1:
        return x.take(indices[0], dims[0]) if x.shape[dims[0]] else x[key]
    return x[key]


index_record: Op = Op(
    "index", "movement", ("input", "*indices"), may_fail=True,
    infer=_index_type,
    eager=index_eager,
    element=lambda emit, index, dims, wrap: emit.operand(
        0, element_index(emit, index, dims, wrap, 1)),
    rules={"input": lambda grad, input_type, indices, dims, wrap: index_add_record(
        zeros_for(grad, input_type), grad, *indices, dims=dims, wrap=wrap)},
)  # fmt: skip


def _put_type(input: Any, src: Any, *indices: Any, dims: tuple[int, ...],
              wrap: bool) -> TensorType:
    expected = indexed_shape(input.shape, indices[0].shape, dims)
    if len(expected) != len(src.shape) or not all(map(equal, expected, src.shape)):
        raise RuntimeError(f"shape mismatch: value tensor of shape {shape_text(src.shape)} cannot "
                           f"be broadcast to indexing result of shape {shape_text(expected)}")
    return typed(input, input.shape)


def _put_eager(xp: Any, x: Any, src: Any, *indices: Any, dims: tuple[int, ...],
               wrap: bool) -> Any:
    whole = xp.array(x, order="C")
    if not _reads_nothing(x, indices, dims, wrap):
        whole[_key(x, indices, dims, wrap)] = src
    return whole


def _add_eager(xp: Any, x: Any, src: Any, *indices: Any, dims: tuple[int, ...],
               wrap: bool) -> Any:
    whole = xp.array(x, order="C")
    if not _reads_nothing(x, indices, dims, wrap):
        whole = add_at(xp, whole, _key(x, indices, dims, wrap), src)
    return whole


def _put_target(emit: Any, index: Sequence[Any], dims: tuple[int, ...], wrap: bool) -> list[Any]:
    return element_index(emit, index, dims, wrap, 2)


def _named(operands: Sequence[Any], dims: tuple[int, ...], wrap: bool) -> tuple[Any, Any]:
    return dims, numel(operands[2].shape)


index_put_record: Op = Op(
    "index_put", "scatter", ("input", "src", "*indices"), may_fail=True,
    infer=_put_type,
    eager=_put_eager,
    scatter=Scatter(_put_target, "set", 1),
    rules={
        "input": lambda grad, src_type, indices, dims, wrap: index_put_record(
            grad, zeros_for(grad, src_type), *indices, dims=dims, wrap=wrap),
        "src": lambda grad, indices, dims, wrap: index_record(
            grad, *indices, dims=dims, wrap=wrap),
    },
)  # fmt: skip

index_add_record: Op = Op(
    "index_put_add", "scatter", ("input", "src", "*indices"), may_fail=True,
    infer=_put_type,
    eager=_add_eager,
    scatter=Scatter(_put_target, "add", 1, _named),
    rules={
        "input": lambda grad: grad,
        "src": lambda grad, indices, dims, wrap: index_record(
            grad, *indices, dims=dims, wrap=wrap),
    },
)  # fmt: skip


def index(input: Any, dims: Sequence[int], indices: Sequence[Any], wrap: bool = True) -> Any:
    """Read `input` at index tensors for dimensions `dims`; they broadcast together."""
    return index_record(input, *together(indices), dims=tuple(dims), wrap=wrap)


def read_at(input: Any, dim: int, position: Any) -> Any:
    """Read `input` along `dim` at the position that a 0-dim tensor holds."""
    return index_record(input, as_index(position), dims=(dim,), wrap=True)


def together(indices: Sequence[Any]) -> list[Any]:
    """Return index tensors as int64, expanded to their common shape."""
    try:
        common = broadcast(*[i.shape for i in indices])
    except RuntimeError:
        shapes = ", ".join(shape_text(i.shape) for i in indices)
        raise IndexError("shape mismatch: indexing tensors could not be broadcast together with "
                         f"shapes {shapes}") from None
    return [i if len(indices) == 1 else i.expand(*common) for i in map(as_index, indices)]


def put(input: Any, dims: Sequence[int], indices: Sequence[Any], src: Any,
        accumulate: bool) -> Any:
    """Return `input` with `src`, broadcast to what `index` would read, written or added there."""
    wide = together(indices)
    shape = indexed_shape(input.shape, wide[0].shape, tuple(dims))
    while len(src.shape) > len(shape) and src.shape[0] == 1:
        src = src.reshape(src.shape[1:])
    try:
        src = src.expand(*shape)
    except RuntimeError:
        raise RuntimeError(f"shape mismatch: value tensor of shape {shape_text(src.shape)} cannot "
                           f"be broadcast to indexing result of shape {shape_text(shape)}"
                           ) from None
    record = index_add_record if accumulate else index_put_record
    return record(input, src, *wide, dims=tuple(dims), wrap=True)


@method()
def index_select(input: Any, dim: int, index: Any) -> Any:
    """Return the elements of dimension `dim` at the positions in the vector `index`.

    IndexError for a position outside the dimension; negative ones are not counted from the end.

    >>> import tracejit
    >>> x = tracejit.arange(6).reshape(2, 3)
    >>> x.index_select(1, tracejit.tensor([2, 0])).tolist()
    [[2, 0], [5, 3]]
    """
    k = normalize_dim(dim, len(input.shape))
    if len(index.shape) > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype not in (int32, int64):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    places = convert(index, int64).reshape(-1)
    if not input.shape:
        if not equal(places.shape[0], 1):
            raise RuntimeError("index_select(): Index to scalar can have only 1 value, got "
                               f"{hint(places.shape[0])} value(s)")
        return index_record(input.reshape(1), places, dims=(0,), wrap=False).reshape(())
    return index_record(input, places, dims=(k,), wrap=False)


@method()
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """Return `input` with slices of `source` added at positions `index` (n,) of dimension `dim`, in
    order. RuntimeError for a source of another dtype or shape, IndexError for positions outside.

    >>> import tracejit
    >>> tracejit.zeros(3).index_add(0, tracejit.tensor([0, 0]), tracejit.tensor([1.0, 2.0]))
    tensor([3., 0., 0.])
    """
    places, source = index_checks.of_index_add(input, dim, index, source)
    scaled = source if type(alpha) is int and alpha == 1 else source * fitting(
        alpha, source.dtype)
    if not input.shape:
        return index_add_record(input.reshape(1), scaled, places, dims=(0,), wrap=False).reshape(())
    k = normalize_dim(dim, len(input.shape))
    return index_add_record(input, scaled, places, dims=(k,), wrap=False)


@method()
@autocasts(cpu="widest")
def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    """Return `input` with the slices of `source` written at positions `index` (n,) of dimension
    `dim`. RuntimeError for another dtype or other slices, IndexError for positions outside.

    >>> import tracejit
    >>> tracejit.zeros(3).index_copy(0, tracejit.tensor([2, 0]), tracejit.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    places, source = index_checks.of_index_copy(input, dim, index, source)
    if not input.shape:
        written = index_put_record(input.reshape(1), source, places, dims=(0,), wrap=False)
        return written.reshape(())
    k = normalize_dim(dim, len(input.shape))
    return index_put_record(input, source, places, dims=(k,), wrap=False)


@method()
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """Return `input` with `value` written at positions `index` (n,), int64, of dimension `dim`.
    IndexError for positions outside, RuntimeError for a value with dimensions.

    >>> import tracejit
    >>> tracejit.index_fill(tracejit.zeros(3), 0, tracejit.tensor([0, -1]), 5.0)
    tensor([5., 0., 5.])
    """
    value = plain_number(value)
    k, places = index_checks.of_index_fill(input, dim, index, value)
    if not input.shape:
        return index_fill(input.reshape(1), 0, index, value).reshape(())
    # A mask, not a scatter of values: a value written twice gets one gradient.
    size = input.shape[k]
    yes, no = (creation.full_of(input, shape, truth, bool_)
               for shape, truth in ((tuple(places.shape), True), ((size,), False)))
    filled = index_put_record(no, yes, places, dims=(0,), wrap=True)
    shape = tuple(size if d == k else 1 for d in range(len(input.shape)))
    value = fitting(value, input.dtype)
    value = fitting_tensor(value, input.dtype) if is_tensor(value) else value
    return convert(where(filled.reshape(shape), value, input), input.dtype)


@method()
def take(input: Any, index: Any) -> Any:
    """Return the elements at linear positions `index` (int64), in the shape of `index`.

    >>> import tracejit
    >>> tracejit.take(tracejit.tensor([[1, 2], [3, 4]]), tracejit.tensor([3, 0]))
    tensor([4, 1])
    """
    must_be_tensors("take", ("index",), (index,))
    if index.dtype is not int64:
        raise RuntimeError("take(): Expected a long tensor for index, but got "
                           f"{SCALAR_NAMES[index.dtype.name]}")
    places, total = index, input.reshape(-1)
    return index_record(total, places, dims=(0,), wrap=True)


# -- gather and scatter ---------------------------------------------------------------------------


def _gather_type(input: Any, index: Any, dim: int, naming: str = "index") -> TensorType:
    return typed(input, index.shape)


def _checked_place(emit: Any, index: Sequence[Any], dim: int, naming: str = "index",
                   volume: Sequence[Any] = ()) -> list[Any]:
    place = emit.to_index(emit.operand(1, index))
    message = OUT_OF_BOUNDS.format("", dim, "")
    return [*index[:dim], emit.checked(place, emit.shape(0)[dim], message, wrap=False),
            *index[dim + 1:]]


def along(xp: Any, x: Any, index: Any, dim: int, naming: str = "index") -> tuple:
    """Return the NumPy index with `index` in dimension `dim` and every other position in its own
    place.

    naming  the word for a position outside in the error: "index", "target" or "class"
    """
    if index.size and (int(index.min()) < 0 or int(index.max()) >= x.shape[dim]):
        bad = int(index.min()) if int(index.min()) < 0 else int(index.max())
        if naming == "target":
            bad = int(index[(index < 0) | (index >= x.shape[dim])][0])
        raise _ERRORS[naming](bad, dim, x.shape[dim])
    grid = [xp.arange(n).reshape((1,) * d + (n,) + (1,) * (x.ndim - d - 1))
            for d, n in enumerate(index.shape)]
    return (*grid[:dim], index, *grid[dim + 1:])


def scatter_type(input: Any, index: Any, src: Any, dim: int, naming: str = "index",
                 volume: Sequence[Any] = ()) -> TensorType:
    return typed(input, input.shape)


def _scatter_eager(xp: Any, x: Any, index: Any, src: Any, dim: int, naming: str = "index",
                   volume: Sequence[Any] = ()) -> Any:
    """Write `src`. `volume` is the shape behind linear positions: an error names it."""
    whole = xp.array(x, order="C")
    if volume and index.size and (int(index.min()) < 0 or int(index.max()) >= x.shape[dim]):
        bad = int(index[(index < 0) | (index >= x.shape[dim])][-1])
        raise RuntimeError(f"Found an invalid max index: {bad} (output volumes are of size "
                           f"{'x'.join(map(str, volume))})")
    whole[along(xp, x, index, dim, naming)] = src
    return whole


def _scatter_add_eager(xp: Any, x: Any, index: Any, src: Any, dim: int) -> Any:
    whole = xp.array(x, order="C")
    return add_at(xp, whole, along(xp, x, index, dim), src)


gather_record: Op = Op(
    "gather", "movement", ("input", "index"), may_fail=True,
    infer=_gather_type,
    eager=lambda xp, x, index, **options: x[along(xp, x, index, **options)],
    element=lambda emit, index, **options: emit.operand(0, _checked_place(emit, index, **options)),
    rules={"input": lambda grad, input_type, index, dim: scatter_add_record(
        zeros_for(grad, input_type), index, grad, dim=dim)},
)  # fmt: skip

scatter_record: Op = Op(
    "scatter", "scatter", ("input", "index", "src"), may_fail=True,
    infer=scatter_type,
    eager=_scatter_eager,
    scatter=Scatter(_checked_place, "set"),
    rules={
        "input": lambda grad, index, src_type, dim: scatter_record(
            grad, index, zeros_for(grad, src_type), dim=dim),
        "src": lambda grad, index, dim: gather_record(grad, index, dim=dim),
    },
)  # fmt: skip

scatter_add_record: Op = Op(
    "scatter_add", "scatter", ("input", "index", "src"), may_fail=True,
    infer=scatter_type,
    eager=_scatter_add_eager,
    scatter=Scatter(_checked_place, "add", named=lambda operands, dim: (
        range(len(operands[0].shape)), operands[1].shape[dim])),
    rules={
        "input": lambda grad: grad,
        "src": lambda grad, index, dim: gather_record(grad, index, dim=dim),
    },
)  # fmt: skip


@method()
def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    """Return out[i][j][k] = input[index[i][j][k]][j][k] for dim 0, and so on.

    RuntimeError for a position outside the dimension.

    >>> import tracejit
    >>> x = tracejit.tensor([[1, 2], [3, 4]])
    >>> x.gather(1, tracejit.tensor([[0], [1]])).tolist()
    [[1], [4]]
    """
    # PyTorch does not compare the ranks for an empty index.
    if len(index.shape) != len(input.shape) and any(equal(n, 0) for n in index.shape):
        normalize_dim(dim, len(input.shape))
        return input.reshape(-1).narrow(0, 0, 0).reshape(tuple(index.shape))
    data, places, k = index_checks.of_gather(input, dim, index, "gather")
    found = gather_record(data, places, dim=k)
    return found if index.shape else found.reshape(())


def _scattered(record: Op, input: Any, dim: int, index: Any, src: Any) -> Any:
    if getattr(src, "is_weak", False) or not is_tensor(src):
        src = creation.filled(tuple(index.shape), src, input.dtype, None, input)
    data, places, values, k = index_checks.of_scatter(input, dim, index, src, record.name)
    result = record(data, places, values, dim=k)
    return result if input.shape else result.reshape(())


@method()
def scatter(input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None,
            reduce: str | None = None) -> Any:
    """Return `input` with src[i][j] written at [index[i][j]][j] (for dim 0); the last of several
    wins. `src`, at least in the shape of `index`, or a number; reduce="add" or "multiply" does
    that instead.

    >>> import tracejit
    >>> tracejit.scatter(tracejit.zeros(3), 0, tracejit.tensor([2, 0]), tracejit.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    source = value if src is None else src
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if reduce == "multiply":
        from tracejit.core.ops.scatter_reduce import scatter_reduce
        if getattr(source, "is_weak", False) or not is_tensor(source):
            source = creation.filled(tuple(index.shape), source, input.dtype, None, input)
        return scatter_reduce(input, dim, index, source, "prod")
    return _scattered(scatter_add_record if reduce else scatter_record, input, dim, index, source)


@method()
@autocasts(cuda="widest")
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """Return `input` with src[i][j] added at [index[i][j]][j] (for dim 0), in row-major order of
    `src`.

    >>> import tracejit
    >>> tracejit.zeros(2).scatter_add(0, tracejit.tensor([1, 1]), tracejit.ones(2)).tolist()
    [0.0, 2.0]
    """
    return _scattered(scatter_add_record, input, dim, index, src)


@method()
def take_along_dim(input: Any, indices: Any, dim: int | None = None) -> Any:
    """Apply `gather` with `indices` (int64) that broadcast; positions count modulo the size.

    >>> import tracejit
    >>> tracejit.take_along_dim(tracejit.tensor([[3, 1], [2, 4]]), tracejit.tensor([[1], [0]]), 1)
    tensor([[1],
            [2]])
    """
    must_be_tensors("take_along_dim", ("indices",), (indices,))
    if indices.dtype is not int64:
        raise RuntimeError("torch.take_along_dim(): dtype of indices should be Long but got "
                           f"{SCALAR_NAMES[indices.dtype.name]}")
    if dim is None:
        return take_along_dim(input.reshape(-1), indices.reshape(-1), 0)
    k = normalize_dim(dim, len(input.shape))
    if len(indices.shape) != len(input.shape):
        raise RuntimeError("torch.take_along_dim(): input and indices should have the same number "
                           f"of dimensions, but got {len(input.shape)} dimensions for input, and "
                           f"{len(indices.shape)} dimensions for indices")
    others = broadcast((*input.shape[:k], 1, *input.shape[k + 1:]),
                       (*indices.shape[:k], 1, *indices.shape[k + 1:]))
    data = input.expand(*others[:k], input.shape[k], *others[k + 1:])
    places = indices.expand(*others[:k], indices.shape[k], *others[k + 1:])
    if equal(input.shape[k], 0):
        return gather(data, k, places)
    return gather(data, k, places.remainder(input.shape[k]))


def is_mask(index: Any) -> bool:
    return index.dtype is bool_ or index.dtype is uint8
