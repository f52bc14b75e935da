"""Copies in another order: flip, roll, triangles, repeating.

In: tensors and static positions. Out: new contiguous tensors. Called by users, by gradient rules,
by `nn`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.ops.movement import expand, given, movedim, typed
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_record import clone
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import as_size, counted, equal, is_one, normalize_dim, normalize_dims
from tracejit.core.ops.types import TensorType


@method()
def contiguous(input: Any, *, memory_format: Any = None) -> Any:
    """Return `input` itself when it is contiguous, else a copy that is; same shape.

    >>> import tracejit
    >>> tracejit.ones(2, 3).t().contiguous().stride()
    (2, 1)
    """
    if hasattr(input, "is_contiguous") and not input.is_contiguous():
        return clone(input)
    return input


# -- flip, roll -----------------------------------------------------------------------------------


def _flip_element(emit: Any, index: Sequence[Any], dims: tuple[int, ...]) -> Any:
    shape = emit.shape(0)
    # The index is the left operand: `size - index` would call the operator of the size.
    return emit.operand(0, [i * -1 + (shape[d] - 1) if d in dims else i
                            for d, i in enumerate(index)])


flip_record: Op = Op(
    "flip", "movement", ("input",),
    infer=lambda input, dims: typed(input, input.shape),
    eager=lambda xp, x, dims: xp.array(xp.flip(x, dims), order="C"),
    element=_flip_element,
    rules={"input": lambda grad, dims: flip_record(grad, dims=dims)},
)  # fmt: skip


@method()
def flip(input: Any, *args: Any, dims: Any = None) -> Any:
    """Reverse the order of the elements in dimensions `dims`; a copy, as in PyTorch.

    >>> import tracejit
    >>> tracejit.arange(3).flip(0).tolist()
    [2, 1, 0]
    """
    if not args and dims is None:
        raise TypeError("flip() missing 1 required positional arguments: \"dims\"")
    asked = given(args if dims is None else (dims,))
    places = normalize_dims(asked, len(input.shape)) if asked else ()
    return flip_record(input, dims=places)


@method()
def fliplr(input: Any) -> Any:
    """Call `flip` along dimension 1, in the same shape. RuntimeError for fewer than 2 dimensions.

    >>> import tracejit
    >>> tracejit.fliplr(tracejit.tensor([[1, 2]]))
    tensor([[2, 1]])
    """
    if len(input.shape) < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


@method()
def flipud(input: Any) -> Any:
    """Call `flip` along dimension 0, in the same shape. RuntimeError for no dimensions.

    >>> import tracejit
    >>> tracejit.flipud(tracejit.tensor([1, 2]))
    tensor([2, 1])
    """
    if not input.shape:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


@method()
def rot90(input: Any, k: int = 1, dims: Sequence[int] = (0, 1)) -> Any:
    """Turn `input` by `k` quarters in the plane of two dimensions, from the first to the second.

    >>> import tracejit
    >>> tracejit.tensor([[1, 2], [3, 4]]).rot90().tolist()
    [[2, 4], [1, 3]]
    """
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    rank = len(input.shape)
    if rank < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {rank}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == rank:
        raise RuntimeError("expected rotation dims to be different, but got dim0 = "
                           f"{dims[0]} and dim1 = {dims[1]}")
    first, second = (normalize_dim(d, rank) for d in dims)
    quarters = as_size(k) % 4
    if quarters == 2:
        return flip(input, (first, second))
    if quarters == 0:
        return clone(input)
    return flip(input, second if quarters == 1 else first).transpose(first, second)


def _roll_element(emit: Any, index: Sequence[Any], shifts: tuple, dims: tuple[int, ...]) -> Any:
    shape, by = emit.shape(0), dict(zip(dims, shifts))
    return emit.operand(0, [(i - by[d]) % shape[d] if d in by else i for d, i in enumerate(index)])


roll_record: Op = Op(
    "roll", "movement", ("input",),
    infer=lambda input, shifts, dims: typed(input, input.shape),
    eager=lambda xp, x, shifts, dims: xp.roll(x, shifts, dims),
    element=_roll_element,
    rules={"input": lambda grad, shifts, dims: roll_record(
        grad, shifts=tuple(-s for s in shifts), dims=dims)},
)  # fmt: skip


@method()
def roll(input: Any, shifts: Any, dims: Any = None) -> Any:
    """Move elements by `shifts` along `dims`. Those that leave come in again at the other end.

    >>> import tracejit
    >>> tracejit.arange(4).roll(1, 0).tolist()
    [3, 0, 1, 2]
    """
    steps = tuple(map(as_size, shifts if isinstance(shifts, (tuple, list)) else (shifts,)))
    places = dims if isinstance(dims, (tuple, list)) else () if dims is None else (dims,)
    if not steps:
        raise RuntimeError("`shifts` required")
    if not places:
        if len(steps) != 1:
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:0")
        return roll_record(input.reshape(-1), shifts=steps, dims=(0,)).reshape(tuple(input.shape))
    if len(steps) != len(places):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, "
                           f"dims:{len(places)}")
    if not input.shape:
        raise IndexError(f"Dimension specified as {places[0]} but tensor has no dimensions")
    total: dict[int, Any] = {}
    for step, dim in zip(steps, places):
        try:
            k = normalize_dim(dim, len(input.shape))
        except IndexError:
            if any(equal(n, 0) for n in input.shape):  # PyTorch does not check the dimension then
                return input.clone()
            raise
        total[k] = total.get(k, 0) + step
    return roll_record(input, shifts=tuple(total.values()), dims=tuple(total))


# -- triangles ------------------------------------------------------------------------------------


def _triangle_type(input: Any, diagonal: int) -> TensorType:
    return typed(input, input.shape)


def _matrices(input: Any, name: str) -> Any:
    if len(input.shape) < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    return input


def _tril_element(emit: Any, index: Sequence[Any], diagonal: int) -> Any:
    return emit.where(index[-1] - index[-2] <= diagonal, lambda: emit.operand(0, index),
                      lambda: emit.number(0))


def _triu_element(emit: Any, index: Sequence[Any], diagonal: int) -> Any:
    return emit.where(index[-1] - index[-2] >= diagonal, lambda: emit.operand(0, index),
                      lambda: emit.number(0))


tril_record: Op = Op(
    "tril", "movement", ("input",),
    infer=_triangle_type,
    eager=lambda xp, x, diagonal: xp.tril(x, diagonal),
    element=_tril_element,
    rules={"input": lambda grad, diagonal: tril_record(grad, diagonal=diagonal)},
)  # fmt: skip

triu_record: Op = Op(
    "triu", "movement", ("input",),
    infer=_triangle_type,
    eager=lambda xp, x, diagonal: xp.triu(x, diagonal),
    element=_triu_element,
    rules={"input": lambda grad, diagonal: triu_record(grad, diagonal=diagonal)},
)  # fmt: skip


@method()
def tril(input: Any, diagonal: int = 0) -> Any:
    """Return the lower triangle of the last two dimensions, zeros above diagonal number `diagonal`.

    >>> import tracejit
    >>> tracejit.ones(2, 2).tril().tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return tril_record(_matrices(input, "tril"), diagonal=as_size(diagonal))


@method()
def triu(input: Any, diagonal: int = 0) -> Any:
    """Return the upper triangle of the last two dimensions, zeros below diagonal number `diagonal`;
    same shape.

    >>> import tracejit
    >>> tracejit.triu(tracejit.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return triu_record(_matrices(input, "triu"), diagonal=as_size(diagonal))


# -- repeating ------------------------------------------------------------------------------------


@method()
def repeat(input: Any, *sizes: Any, repeats: Any = None) -> Any:
    """Copy `input` next to itself `sizes[k]` times along dimension k, new dimensions first.

    >>> import tracejit
    >>> tracejit.arange(2).repeat(2, 2).tolist()
    [[0, 1, 0, 1], [0, 1, 0, 1]]
    """
    times = tuple(map(counted, given(sizes, repeats)))
    lead = len(times) - len(input.shape)
    if lead < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of "
                           "dimensions of tensor")
    sizes_in = (1,) * lead + tuple(input.shape)
    apart = [n for size in sizes_in for n in (1, size)]
    wide = [n for count, size in zip(times, sizes_in) for n in (count, size)]
    whole = [count * size for count, size in zip(times, sizes_in)]
    return _copied(expand(input.reshape(tuple(apart)), *wide).reshape(tuple(whole)), times)


@method()
def tile(input: Any, *sizes: Any, dims: Any = None) -> Any:
    """Call `repeat`; missing leading counts of dimensions are 1.

    >>> import tracejit
    >>> tracejit.tile(tracejit.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    times = given(sizes, dims)
    return repeat(input, *(1,) * (len(input.shape) - len(times)), *times)


def repeated_each(input: Any, repeats: Any, dim: int) -> Any:
    """Repeat every element of dimension `dim` `repeats` times in a row."""
    moved = movedim(input, dim, -1).unsqueeze(-1)
    wide = expand(moved, *input.shape[:dim], *input.shape[dim + 1:], input.shape[dim], repeats)
    return _copied(movedim(wide.flatten(-2), -1, dim), (repeats,))


def _copied(repeated: Any, times: Sequence[Any]) -> Any:
    """Return a repetition with memory of its own, also where nothing was repeated."""
    copied = all(type(n) is int for n in times) and not all(map(is_one, times))
    empty = any(type(n) is int and n == 0 for n in repeated.shape)  # its reshape is a view
    return contiguous(repeated) if copied and not empty else clone(repeated)
