"""Padding: elements added at both ends of the last dimensions, or taken away.

In: tensors and numbers of elements. Out: new contiguous tensors. Called by users as
`nn.functional.pad`, by convolutions, by `nn`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.core.ops import creation
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.fitting import fitting, is_int
from tracejit.core.ops.movement import typed
from tracejit.core.ops.pointwise_record import clone, constant
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import as_size, hint, shape_text
from tracejit.core.ops.types import BOOL, INTEGER, SCALAR_NAMES, TensorType, element


# -- a constant ------------------------------------------------------------------------------------
def _pad_type(input: Any, pads: tuple, value: Any) -> TensorType:
    return typed(input, [size + before + after
                         for size, (before, after) in zip(input.shape, pads)])


def _pad_element(emit: Any, index: Sequence[Any], pads: tuple, value: Any) -> Any:
    shape = emit.shape(0)
    inside = None
    for i, size, (before, after) in zip(index, shape, pads):
        for amount, condition in ((before, i >= before), (after, i < size + before)):
            if type(amount) is not int or amount > 0:
                inside = condition if inside is None else inside & condition
    source = [i - before for i, (before, _) in zip(index, pads)]
    if inside is None:
        return emit.operand(0, source)
    return emit.where(inside, lambda: emit.operand(0, source), lambda: emit.number(value))


def _pad_eager(xp: Any, x: Any, pads: tuple, value: Any) -> Any:
    sizes = tuple(n + before + after for n, (before, after) in zip(x.shape, pads))
    whole = xp.full(sizes, element(value, x.dtype), x.dtype)
    ours = tuple(slice(max(b, 0), max(b, 0) + max(n + min(b, 0) + min(a, 0), 0))
                 for n, (b, a) in zip(x.shape, pads))
    theirs = tuple(slice(max(-b, 0), max(n - max(-a, 0), max(-b, 0)))
                   for n, (b, a) in zip(x.shape, pads))
    whole[ours] = x[theirs]
    return whole


pad_record: Op = Op(
    "constant_pad", "movement", ("input",), embeds=True,
    sizes=("pads",),
    infer=_pad_type,
    eager=_pad_eager,
    element=_pad_element,
    node_name="ConstantPadNdBackward0",
    rules={"input": lambda grad, pads: pad_record(
        grad, pads=tuple((-before, -after) for before, after in pads), value=0)},
)  # fmt: skip


# -- the tensor's own elements ---------------------------------------------------------------------
_SOURCES = {
    "replicate": lambda place, size: place.clamp(0, size - 1),
    "reflect": lambda place, size: (size - 1) - ((size - 1) - place.abs()).abs(),
    "circular": lambda place, size: place.remainder(size),
}
_NAMES = {"reflect": "reflection", "replicate": "replication"}


def _check_padded_from_itself(input: Any, pairs: tuple, mode: str) -> None:
    """Check as PyTorch does before it pads with own elements; `pairs` from the last dimension."""
    n, ndim = len(pairs), len(input.shape)
    if not (n in (1, 2, 3) and ndim in (n + 1, n + 2)):
        raise NotImplementedError(
            f"Padding size {2 * n} is not supported for {ndim}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    if mode == "circular":
        return
    if any(size == 0 for size in input.shape[ndim - n - 1:]):
        raise RuntimeError(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and "
            f"other non-zero dimensions for input, but got: {shape_text(input.shape)}"
        )
    if mode == "reflect":
        for k, (before, after) in enumerate(pairs):
            dim = ndim - 1 - k
            if before >= input.shape[dim] or after >= input.shape[dim]:
                raise RuntimeError(
                    f"Argument #{4 + 2 * k}: Padding size should be less than the corresponding "
                    f"input dimension, but got: padding ({hint(before)}, {hint(after)}) at "
                    f"dimension {dim} of input {shape_text(input.shape)}"
                )
    sizes = [input.shape[ndim - 1 - k] + sum(pair) for k, pair in enumerate(pairs)]
    if all(size < 1 for size in sizes):
        have, made = (
            [f"{a}: {hint(x)}" for a, x in zip("DHW"[-n:], each)]
            for each in (input.shape[-n:], sizes[::-1])
        )
        first = " ".join(have[:-2]) + " " * (n == 3) + ", ".join(have[-2:])
        space = " " if n == 2 and mode == "replicate" else ""
        raise RuntimeError(f"input ({first}{space}) is too small. Calculated output "
                           f"{' '.join(made)}")
    for size in sizes[::-1]:
        if size < 0:
            whole = ", ".join(str(hint(each)) for each in (*input.shape[:-n], *sizes[::-1]))
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {hint(size)}: [{whole}]")
    if input.dtype.category == BOOL:
        raise NotImplementedError(f'"{_NAMES[mode]}_pad{n}d" not implemented for '
                                  f"'{SCALAR_NAMES[input.dtype.name]}'")


def _padded_from_itself(input: Any, dim: int, before: Any, after: Any, mode: str) -> Any:
    size = input.shape[dim]
    if mode == "circular":
        if before > size or after > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if size + before + after < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
        if before < 0 or after < 0:
            first, end = (-before if before < 0 else 0), (size + after if after < 0 else size)
            input = input.narrow(dim, first, end - first)
            before, after = (0 if n < 0 else n for n in (before, after))
            size = input.shape[dim]
        if type(before) is int and type(after) is int and not before and not after:
            return clone(input)
    place = creation.iota(size + before + after, input) - before
    return input.index_select(dim, _SOURCES[mode](place, size))


# -- what users call -------------------------------------------------------------------------------
def pad(input: Any, pad: Sequence[Any], mode: str = "constant", value: float | None = None) -> Any:
    """Add elements (or, for negative numbers, remove them) at both ends of the last dimensions.

    `pad` is (before, after) of the last dimension, then of the one before it, and so on. mode:
    "constant" (of `value`); or, for the last one to three dimensions of (N, C, ...) or (C, ...),
    "reflect", "replicate" or "circular".

    >>> import tracejit
    >>> tracejit.nn.functional.pad(tracejit.ones(2), (1, 0)).tolist()
    [0.0, 1.0, 1.0]

    RuntimeError if sizes do not fit, NotImplementedError for other modes and dimensions.
    """
    ndim = len(input.shape)
    amounts = tuple(map(as_size, pad))
    if len(amounts) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(amounts) > 2 * ndim:
        raise RuntimeError(f"Padding length should be less than or equal to two times the input "
                           f"dimension but got padding length {len(amounts)} and input of "
                           f"dimension {ndim}")
    pairs, pads = _by_dimension(input, amounts)
    if mode == "constant":
        return _with_constant(input, pads, _as_a_float(value, input.dtype))
    if mode not in _SOURCES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    _check_padded_from_itself(input, pairs, mode)
    wide = mode == "replicate" or mode == "reflect" and len(pairs) < 3
    return (_padded_in_float32 if wide else _padded)(input, pads, mode)


def constant_pad_nd(input: Any, pad: Sequence[Any], value: float = 0) -> Any:
    """Pad with a constant: `value` at both ends of the last dimensions, as `nn.functional.pad`.

    >>> import tracejit
    >>> tracejit.constant_pad_nd(tracejit.ones(2), (1, 0), 5.0).tolist()
    [5.0, 1.0, 1.0]

    RuntimeError if sizes do not fit.
    """
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * len(input.shape):
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad "
            f"length is {len(pad)} while the input has {len(input.shape)} dimensions.")
    return _with_constant(input, _by_dimension(input, tuple(map(as_size, pad)))[1], value)


def _by_dimension(input: Any, amounts: tuple) -> tuple[tuple, tuple]:
    """Return (before, after) of the last dimensions, the last first; and of all, in order."""
    pairs = tuple(zip(amounts[::2], amounts[1::2]))
    return pairs, (*((0, 0),) * (len(input.shape) - len(pairs)), *reversed(pairs))


def _as_a_float(value: Any, dtype: Any) -> Any:
    """Turn an int constant into a float; integers must have that float as an element."""
    if not is_int(value):
        return value
    number = float(constant(value))
    if dtype.category != INTEGER:
        return number
    limits = np.iinfo(dtype.numpy)
    if not limits.min <= number <= limits.max:
        kind = "int" if dtype.name == "int32" else f"{dtype.name}_t"
        raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
    return int(number)


def _check_what_is_left(input: Any, pads: tuple) -> None:
    """Check that elements to take away are there, also where the other end grows."""
    for size, amounts in zip(input.shape, pads):
        for amount in amounts:
            if amount < 0:
                size = size + amount
                if size < 0:
                    raise RuntimeError("narrow(): length must be non-negative.")


def _with_constant(input: Any, pads: tuple, value: Any) -> Any:
    _check_what_is_left(input, pads)
    value = fitting(value, input.dtype)
    return pad_record(input, pads=pads, value=0 if value is None else constant(value))


def _padded(input: Any, pads: tuple, mode: str) -> Any:
    padded = input
    for dim, (before, after) in enumerate(pads):
        if type(before) is not int or type(after) is not int or before or after:
            padded = _padded_from_itself(padded, dim, before, after, mode)
    return clone(input) if padded is input else padded


_padded_in_float32 = autocasts(cpu="float32")(_padded)
