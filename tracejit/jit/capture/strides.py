"""Strides while recording. By strides, eager mode decides which tensors share memory; a recording
must decide alike in all calls that it serves.

In: deferred tensors, with shapes and strides as ints or symbolic sizes. Out: strides, whether
elements lie in order, whether a reshape is a view. Comparing sizes records guards. Called by the
tracer, branches and loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.ops.shapes import same_structure
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.storage import UNKNOWN, FunctionalTensor

Sizes = list[Any]


def reshape_is_view(traced: FunctionalTensor, target: Sequence[Any]) -> bool:
    """Return True if reshaping this tensor to `target` gives a view of its memory."""
    shape, strides = _layout(traced)
    if all(_is_one(n) or same_structure(*both)
           for n, *both in zip(shape, strides, _contiguous(shape))):
        return True  # in order, whatever the sizes are
    return can_view_as(shape, strides, list(target))


def _is_one(size: Any) -> bool:
    return type(size) is int and size == 1


def strides(traced: FunctionalTensor) -> Sizes:
    """Return strides in elements, as eager mode would give them."""
    shape, found = _layout(traced)
    if _in_order(shape, found):
        return _contiguous([1 if n == 0 else n for n in shape])
    return found


def is_contiguous(traced: FunctionalTensor) -> bool:
    """Return True if elements lie in row-major order without gaps, as `Tensor.is_contiguous`
    says."""
    return _in_order(*_layout(traced))


def known_strides(
    traced: FunctionalTensor, without: int | None = None, always: bool = False
) -> Any:
    """Return strides for memory that stands for this tensor, or for a slice of it across `without`.

    None if the elements are known to lie in order, unless `always`. UNKNOWN if a value decides.
    Structure alone tells order, without a guard; the strides of some views (`_expand`, `_reshape`,
    kinds not in `_CHANGES`) record guards.
    """
    memory = traced.memory
    if memory.strides is None and not traced.views and without is None and not always:
        return None
    if memory.strides is UNKNOWN:
        return UNKNOWN
    shape, strides = _layout(traced)
    if without is not None:
        del shape[without], strides[without]
    ordered = map(same_structure, strides, _contiguous(shape))
    flat = map(_is_one, shape)
    return None if all(map(max, ordered, flat)) and not always else tuple(strides)


def merged_strides(what: str, *cases: FunctionalTensor) -> Any:
    """Return UNKNOWN, for what may be one of several tensors that lie in different ways.

    Raise RegionRefused if one is strided and no whole tensor of the caller's: a replay could not
    tell it from memory that the program makes.
    """
    for traced in cases:
        strides = known_strides(traced)
        own = traced.memory.input_tensor is not None and not traced.views
        if strides is not None and strides is not UNKNOWN and not own:
            raise RegionRefused(
                f"{what} has different strides in the two cases")
    return UNKNOWN


def offset(traced: FunctionalTensor, base: Any) -> Any:
    """Return where the first element lies in the storage, for memory that starts at `base`.

    None for a kind of view that does not tell.
    """
    memory = traced.memory
    root = memory.value if memory.input is None else memory.input
    shape: Sizes = list(root.type.shape)
    strides: Sizes = list(memory.strides or _contiguous(shape))
    for op, operands, attributes in traced.views:
        if operands:
            return None
        if op.name in ("slice", "select"):
            start = attributes["start" if op.name == "slice" else "index"]
            if any(n == 0 for n in shape):
                strides = _contiguous([1 if n == 0 else n for n in shape])
            base = base + start * strides[attributes["dim"]]
        elif op.name in ("real", "imag", "view_as_real"):
            base = base * 2 + (op.name == "imag")
        elif op.name == "view_as_complex":
            base = base // 2
        change = _CHANGES.get(op.name)
        if change is None or not change(shape, strides, attributes):
            return None
    return base


def may_overlap(name: str, attributes: dict) -> bool:
    """Return True if elements of a view by this op may share memory."""
    if name == "unfold":
        return bool(attributes["step"] < attributes["size"])
    if name != "as_strided":
        return name == "expand"
    reach: Any = 0
    for stride, size in sorted(zip(attributes["stride"], attributes["size"])):
        if size > 1 and stride <= reach:
            return True
        reach = reach + (size - 1) * stride
    return False


def same_strides(shape: Sequence[Any], one: Any, other: Any) -> bool:
    """Return True if tensors of that shape lie alike. The answer is guarded if structure does not
    give it."""
    if one is UNKNOWN or other is UNKNOWN:
        return one is other
    if one is None and other is None:
        return True
    ordered = _contiguous(list(shape))
    pairs = zip(shape, ordered if one is None else one, ordered if other is None else other)
    return all(same_structure(a, b) or n == 1 or a == b for n, a, b in pairs)


def _in_order(shape: Sizes, strides: Sizes) -> bool:
    """Return True if these strides are row-major, without gaps.

    Sizes are compared only where strides differ: a size of 1 may have any stride, and without
    elements any layout is in order.
    """
    step: Any = 1
    for d in reversed(range(len(shape))):
        if not same_structure(strides[d], step) and shape[d] != 1 and strides[d] != step:
            return any(n == 0 for n in shape)
        step = step * shape[d]
    return True


def can_view_as(shape: Sizes, strides: Sizes, target: Sizes) -> bool:
    """Return True if elements laid out like this can be seen in another shape without a copy.

    Dimensions that lie in memory like one (each stride is the next one times its size) can be split
    anew; others cannot.

    >>> can_view_as([2, 3], [3, 1], [6]), can_view_as([2, 3], [1, 2], [6])
    (True, False)
    >>> can_view_as([1, 3], [7, 2], [3, 1])
    True
    """
    return strides_as(shape, strides, target) is not None


def strides_as(shape: Sizes, strides: Sizes, target: Sizes) -> Sizes | None:
    """Return the strides by which the same elements have the shape `target`; None if there are
    none.

    >>> strides_as([2, 6], [12, 1], [2, 3, 2]), strides_as([2, 6], [12, 1], [12])
    ([12, 2, 1], None)
    """
    if any(type(n) is int and n == 0 for n in shape):
        return _contiguous(list(target))
    found = _strides_of_elements(shape, strides, target)
    if found is None and any(n == 0 for n in shape):
        return _contiguous(list(target))
    return found


def _strides_of_elements(shape: Sizes, strides: Sizes, target: Sizes) -> Sizes | None:
    """Do as `strides_as`, for a layout that has elements."""
    dimensions, wanted = list(zip(shape, strides)), list(target)
    found: list[Any] = []
    while dimensions:
        count, step = dimensions.pop()
        if count == 1:
            continue
        while dimensions and (dimensions[-1][0] == 1 or dimensions[-1][1] == step * count):
            count = count * dimensions.pop()[0]
        covered: Any = 1
        while wanted and (covered < count or wanted[-1] == 1):
            found.insert(0, step * covered)
            covered = covered * wanted.pop()
        if covered != count:
            return None
    if any(n != 1 for n in wanted):
        return None
    return [1] * len(wanted) + found


def _contiguous(shape: Sizes) -> Sizes:
    strides: Sizes = []
    step: Any = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step = step * size
    return strides


def _layout(traced: FunctionalTensor) -> tuple[Sizes, Sizes]:
    """Return shape and strides, symbolic unless a kind of view is not in `_CHANGES`."""
    memory = traced.memory
    root = memory.value if memory.input is None else memory.input
    shape: Sizes = list(root.type.shape)
    strides: Sizes = list(memory.strides or _contiguous(shape))
    for op, _, attributes in traced.views:
        change = _CHANGES.get(op.name)
        if change is None or not change(shape, strides, attributes):
            return _of_example(traced)
    return shape, strides


def _of_example(traced: FunctionalTensor) -> tuple[Sizes, Sizes]:
    """Return shape and strides in this call. The program then serves no others."""
    layout = traced.layout(exact=True)
    return list(layout.shape), [s // layout.itemsize for s in layout.strides]


def _permute(shape: Sizes, strides: Sizes, attributes: dict) -> bool:
    dims = attributes["dims"]
    shape[:], strides[:] = [shape[d] for d in dims], [strides[d] for d in dims]
    return True


def _slice(shape: Sizes, strides: Sizes, attributes: dict) -> bool:
    dim, start, stop, step = (attributes[k] for k in ("dim", "start", "stop", "step"))
    shape[dim] = (stop - start + step - 1) // step
    strides[dim] = strides[dim] * step
    return True


def _select(shape: Sizes, strides: Sizes, attributes: dict) -> bool:
    del shape[attributes["dim"]], strides[attributes["dim"]]
    return True


def _expand(shape: Sizes, strides: Sizes, attributes: dict) -> bool:
    target = attributes["shape"]
    new = len(target) - len(shape)
    kept = [same_structure(n, m) or n != 1 or m == 1 for n, m in zip(shape, target[new:])]
    strides[:] = [s if keep else 0 for s, keep in zip(strides, kept)]
    for d in reversed(range(new)):
        strides.insert(0, target[d + 1] * strides[0] if target[d] == 1 and strides else 0)
    shape[:] = target
    return True


def _reshape(shape: Sizes, strides: Sizes, attributes: dict) -> bool:
    if all(map(same_structure, strides, _contiguous(shape))):
        shape[:], strides[:] = attributes["shape"], _contiguous(list(attributes["shape"]))
        return True
    found = strides_as(shape, strides, attributes["shape"])
    if found is None:
        return False
    shape[:], strides[:] = attributes["shape"], found
    return True


def _as_strided(shape: Sizes, strides: Sizes, attributes: dict) -> bool:
    shape[:], strides[:] = attributes["size"], attributes["stride"]
    return True


def _unsqueeze(shape: Sizes, strides: Sizes, attributes: dict) -> bool:
    dim = attributes["dim"]
    strides.insert(dim, shape[dim] * strides[dim] if dim < len(shape) else 1)
    shape.insert(dim, 1)
    return True


def _squeeze(shape: Sizes, strides: Sizes, attributes: dict) -> bool:
    for dim in sorted(attributes["dims"], reverse=True):
        del shape[dim], strides[dim]
    return True


def _part(shape: Sizes, strides: Sizes, attributes: dict) -> bool:
    strides[:] = [s * 2 for s in strides]
    return True


def _pairs(shape: Sizes, strides: Sizes, attributes: dict) -> bool:
    _part(shape, strides, attributes)
    shape.append(2)
    strides.append(1)
    return True


def _of_pairs(shape: Sizes, strides: Sizes, attributes: dict) -> bool:
    del shape[-1], strides[-1]
    strides[:] = [s // 2 for s in strides]
    return True


# op -> its change of shape and strides, in place; False if only the example tells
_CHANGES = {
    "as_strided": _as_strided,
    "imag": _part,
    "real": _part,
    "view_as_complex": _of_pairs,
    "view_as_real": _pairs,
    "expand": _expand,
    "permute": _permute,
    "slice": _slice,
    "select": _select,
    "select_at": _select,
    "reshape": _reshape,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
}
