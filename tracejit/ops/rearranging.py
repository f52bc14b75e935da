"""Copies in another order: flip, roll, triangles, padding, repeating.

In: tensors and static positions. Out: new contiguous tensors. Called by users, by gradient
rules, by `nn`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.ops import creation
from tracejit.ops.movement import as_size, expand, given, movedim, typed
from tracejit.ops.operators import method
from tracejit.ops.pointwise_record import clone
from tracejit.ops.record import Op
from tracejit.ops.shapes import hint, is_one, normalize_dim, normalize_dims
from tracejit.ops.types import TensorType


@method()
def contiguous(input: Any, *, memory_format: Any = None) -> Any:
    """`input` itself when it is contiguous, else a copy that is."""
    if hasattr(input, "is_contiguous") and not input.is_contiguous():
        return clone(input)
    return input


# -- flip, roll -----------------------------------------------------------------------------------


def _flip_element(emit: Any, index: Sequence[Any], dims: tuple[int, ...]) -> Any:
    shape = emit.shape(0)
    # The index stands on the left: `size - index` would ask the size what to do.
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
    """The order of the elements reversed in dimensions `dims`; a copy, as in PyTorch.

    >>> import tracejit
    >>> tracejit.arange(3).flip(0).tolist()
    [2, 1, 0]
    """
    asked = given(args if dims is None else (dims,))
    places = normalize_dims(asked, len(input.shape)) if asked else ()
    return flip_record(input, dims=places)


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
    """Elements moved by `shifts` along `dims`, those that leave come in again at the other end.

    >>> import tracejit
    >>> tracejit.arange(4).roll(1, 0).tolist()
    [3, 0, 1, 2]
    """
    steps = tuple(map(as_size, shifts if isinstance(shifts, (tuple, list)) else (shifts,)))
    places = dims if isinstance(dims, (tuple, list)) else () if dims is None else (dims,)
    if not places:
        if len(steps) != 1:
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:0")
        return roll_record(input.reshape(-1), shifts=steps, dims=(0,)).reshape(tuple(input.shape))
    if len(steps) != len(places):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, "
                           f"dims:{len(places)}")
    total: dict[int, Any] = {}
    for step, dim in zip(steps, places):
        k = normalize_dim(dim, len(input.shape))
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
    """The lower triangle of the last two dimensions, zeros above diagonal number `diagonal`.

    >>> import tracejit
    >>> tracejit.ones(2, 2).tril().tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return tril_record(_matrices(input, "tril"), diagonal=as_size(diagonal))


@method()
def triu(input: Any, diagonal: int = 0) -> Any:
    """The upper triangle of the last two dimensions, zeros below diagonal number `diagonal`."""
    return triu_record(_matrices(input, "triu"), diagonal=as_size(diagonal))


# -- padding --------------------------------------------------------------------------------------


def _pad_type(input: Any, pads: tuple, value: Any) -> TensorType:
    sizes = []
    for d, (size, (before, after)) in enumerate(zip(input.shape, pads)):
        total = size + before + after
        if (hint(before) < 0 or hint(after) < 0) and total < 0:
            raise RuntimeError(f"The input size {hint(size)}, plus negative padding {hint(before)} "
                               f"and {hint(after)}, resulted in a negative output size, which is "
                               f"invalid. Check dimension {d} of your input.")
        sizes.append(total)
    return typed(input, sizes)


def _pad_element(emit: Any, index: Sequence[Any], pads: tuple, value: Any) -> Any:
    shape = emit.shape(0)
    inside = None
    for i, size, (before, after) in zip(index, shape, pads):
        for needed, condition in ((hint(before) > 0, i >= before),
                                  (hint(after) > 0, i < size + before)):
            if needed:
                inside = condition if inside is None else inside & condition
    source = [i - before for i, (before, _) in zip(index, pads)]
    if inside is None:
        return emit.operand(0, source)
    return emit.where(inside, lambda: emit.operand(0, source), lambda: emit.number(value))


def _pad_eager(xp: Any, x: Any, pads: tuple, value: Any) -> Any:
    sizes = tuple(n + before + after for n, (before, after) in zip(x.shape, pads))
    whole = xp.full(sizes, value, x.dtype)
    ours = tuple(slice(max(b, 0), max(b, 0) + max(n + min(b, 0) + min(a, 0), 0))
                 for n, (b, a) in zip(x.shape, pads))
    theirs = tuple(slice(max(-b, 0), max(n - max(-a, 0), max(-b, 0)))
                   for n, (b, a) in zip(x.shape, pads))
    whole[ours] = x[theirs]
    return whole


pad_record: Op = Op(
    "constant_pad", "movement", ("input",),
    infer=_pad_type,
    eager=_pad_eager,
    element=_pad_element,
    node_name="ConstantPadNdBackward0",
    rules={"input": lambda grad, pads: pad_record(
        grad, pads=tuple((-before, -after) for before, after in pads), value=0)},
)  # fmt: skip

_SOURCES = {
    "replicate": lambda place, size: place.clamp(0, size - 1),
    "reflect": lambda place, size: (size - 1) - ((size - 1) - place.abs()).abs(),
    "circular": lambda place, size: place.remainder(size),
}


def pad(input: Any, pad: Sequence[Any], mode: str = "constant", value: float | None = None) -> Any:
    """Elements added (or, for negative numbers, removed) at both ends of the last dimensions.

    `pad` is (before, after) of the last dimension, then of the one before it, and so on.
    mode: "constant" (of `value`), "reflect", "replicate" or "circular".

    >>> import tracejit
    >>> tracejit.nn.functional.pad(tracejit.ones(2), (1, 0)).tolist()
    [0.0, 1.0, 1.0]
    """
    ndim = len(input.shape)
    amounts = tuple(map(as_size, pad))
    if len(amounts) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(amounts) > 2 * ndim:
        raise RuntimeError(f"Padding length should be less than or equal to two times the input "
                           f"dimension but got padding length {len(amounts)} and input of "
                           f"dimension {ndim}")
    pairs = tuple(zip(amounts[::2], amounts[1::2]))
    pads = (*((0, 0),) * (ndim - len(pairs)), *reversed(pairs))
    if mode == "constant":
        if value is not None and getattr(value, "is_weak", False):  # part of the program
            value = float(value)
        return pad_record(input, pads=pads, value=0 if value is None else value)
    if mode not in _SOURCES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    for dim, (before, after) in enumerate(pads):
        if type(before) is not int or type(after) is not int or before or after:
            input = _padded_from_itself(input, dim, before, after, mode)
    return input


def _padded_from_itself(input: Any, dim: int, before: Any, after: Any, mode: str) -> Any:
    size = input.shape[dim]
    limit = size - 1 if mode == "reflect" else size
    if mode != "replicate" and (before > limit or after > limit):
        bound = "less than" if mode == "reflect" else "less than or equal to"
        raise RuntimeError(f"Padding size should be {bound} the corresponding input dimension, "
                           f"but got: padding "
                           f"({hint(before)}, {hint(after)}) at dimension {dim} of input of size "
                           f"{hint(size)}")
    if mode == "circular" and (before < 0 or after < 0):
        first, end = (-before if before < 0 else 0), (size + after if after < 0 else size)
        input = input.narrow(dim, first, end - first)
        before, after = (0 if n < 0 else n for n in (before, after))
        size = input.shape[dim]
    place = creation.iota(size + before + after, input) - before
    return input.index_select(dim, _SOURCES[mode](place, size))


# -- repeating ------------------------------------------------------------------------------------


@method()
def repeat(input: Any, *sizes: Any) -> Any:
    """`input` copied next to itself `sizes[k]` times along dimension k, new dimensions first.

    >>> import tracejit
    >>> tracejit.arange(2).repeat(2, 2).tolist()
    [[0, 1, 0, 1], [0, 1, 0, 1]]
    """
    times = given(sizes)
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
def tile(input: Any, *dims: Any) -> Any:
    """`repeat`, with missing leading counts taken as 1."""
    times = given(dims)
    return repeat(input, *(1,) * (len(input.shape) - len(times)), *times)


def repeated_each(input: Any, repeats: Any, dim: int) -> Any:
    """Every element of dimension `dim` repeated `repeats` times in a row."""
    moved = movedim(input, dim, -1).unsqueeze(-1)
    wide = expand(moved, *input.shape[:dim], *input.shape[dim + 1:], input.shape[dim], repeats)
    return _copied(movedim(wide.flatten(-2), -1, dim), (repeats,))


def _copied(repeated: Any, times: Sequence[Any]) -> Any:
    """A repetition with memory of its own, also where nothing was repeated."""
    return clone(repeated) if all(map(is_one, times)) else contiguous(repeated)
