"""Layouts of views, worked out from sizes and strides.

In: a view op, a tensor with values, attributes. Out: the tensor over the same memory, or None where
the array library has to decide. Called by `dispatch`: NumPy would take several times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.eager.state import TensorState, contiguous_strides, make
from tracejit.core.memory import CPU
from tracejit.core.ops.record import Op

_MOST_DIMENSIONS = 63  # NumPy has at most 64, and says so

# (elements by which the view starts later, shape, strides); None: the library decides
Layout = tuple[int, tuple, tuple | None] | None


def seen(op: Op, x: TensorState, attributes: dict) -> Any:
    """Return a view op's result, without its record as a view; None where it may be no view."""
    layout = _LAYOUTS.get(op.name)
    shape, storage = x._shape, x._storage
    if layout is None or x._device is not CPU or storage is None or not storage.nbytes:
        return None
    found = layout(shape, x._strides, **attributes)
    if found is None:
        return None
    skipped, sizes, strides = found
    if 0 in sizes or len(sizes) > _MOST_DIMENSIONS:
        return None
    if strides is not None and _is_contiguous(sizes, strides):
        strides = None
    return make(storage, x._offset + skipped, sizes, strides, x._dtype, CPU)


def _is_contiguous(shape: tuple, strides: tuple) -> bool:
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1:
            if stride != step:
                return False
            step *= size
    return True


def _reshape(sizes: tuple, strides: tuple | None, shape: Any) -> Layout:
    if strides is not None:
        return None
    elements = 1
    for size in sizes:
        elements *= size
    for size in shape:
        if type(size) is not int or size <= 0 or elements % size:
            return None
        elements //= size
    return (0, tuple(shape), None) if elements == 1 else None


def _permute(sizes: tuple, strides: tuple | None, dims: Any) -> Layout:
    steps = contiguous_strides(sizes) if strides is None else strides
    return 0, tuple([sizes[d] for d in dims]), tuple([steps[d] for d in dims])


def _unsqueeze(sizes: tuple, strides: tuple | None, dim: int) -> Layout:
    shape = (*sizes[:dim], 1, *sizes[dim:])
    if strides is None:
        return 0, shape, None
    step = sizes[dim] * strides[dim] if dim < len(sizes) else 1
    return 0, shape, (*strides[:dim], step, *strides[dim:])


def _squeeze(sizes: tuple, strides: tuple | None, dims: Any) -> Layout:
    kept = [d for d in range(len(sizes)) if d not in dims]
    if any(sizes[d] != 1 for d in dims):
        return None
    shape = tuple([sizes[d] for d in kept])
    return 0, shape, None if strides is None else tuple([strides[d] for d in kept])


def _slice(
    sizes: tuple, strides: tuple | None, dim: int, start: Any, stop: Any, step: Any
) -> Layout:
    if not type(start) is type(stop) is type(step) is int or not 0 <= start < stop <= sizes[dim]:
        return None
    if step < 1:
        return None
    steps = contiguous_strides(sizes) if strides is None else strides
    count = (stop - start + step - 1) // step
    return (start * steps[dim], (*sizes[:dim], count, *sizes[dim + 1 :]),
            (*steps[:dim], steps[dim] * step, *steps[dim + 1 :]))  # fmt: skip


def _select(sizes: tuple, strides: tuple | None, dim: int, index: Any) -> Layout:
    if type(index) is not int or not 0 <= index < sizes[dim]:
        return None
    steps = contiguous_strides(sizes) if strides is None else strides
    shape = (*sizes[:dim], *sizes[dim + 1 :])
    return index * steps[dim], shape, (*steps[:dim], *steps[dim + 1 :])


def _expand(sizes: tuple, strides: tuple | None, shape: Any) -> Layout:
    lead, found = len(shape) - len(sizes), [0] * len(shape)
    if lead < 0:
        return None
    strides = contiguous_strides(sizes) if strides is None else strides
    for d, size in enumerate(sizes, lead):
        if size != 1 and size != shape[d] or type(shape[d]) is not int:
            return None
        if size != 1:
            found[d] = strides[d - lead]
    step = 0
    for d in reversed(range(len(shape))):
        if shape[d] == 1:
            found[d] = strides[d - lead] if d >= lead else step
        step = shape[d] * found[d]
    return 0, tuple(shape), tuple(found)


_LAYOUTS: dict[str, Callable[..., Layout]] = {
    "reshape": _reshape, "permute": _permute, "unsqueeze": _unsqueeze, "squeeze": _squeeze,
    "slice": _slice, "select": _select, "expand": _expand,
}  # fmt: skip
