"""Whether a reshape shares memory: eager mode decides by strides, so a recording must decide
alike, for all it serves.

In: the shape and strides of what is reshaped, as ints or symbolic sizes. Out: the answer;
comparing sizes records guards.
Called by the recorder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.capture.aliasing import Traced

Sizes = list[Any]


def stays_view(traced: Traced, target: Sequence[Any]) -> bool:
    """Whether reshaping this tensor to `target` gives a view of its memory."""
    shape, strides = _layout(traced)
    return viewable(shape, strides, list(target))


def viewable(shape: Sizes, strides: Sizes, target: Sizes) -> bool:
    """Whether elements laid out like this can be seen in another shape without copying them.

    Dimensions that lie in memory like one (each stride is the next one times its size) can be cut
    anew; others cannot.

    >>> viewable([2, 3], [3, 1], [6]), viewable([2, 3], [1, 2], [6])
    (True, False)
    >>> viewable([1, 3], [7, 2], [3, 1])
    True
    """
    return strides_as(shape, strides, target) is not None


def strides_as(shape: Sizes, strides: Sizes, target: Sizes) -> Sizes | None:
    """The strides under which the same elements have the shape `target`; None where none do.

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
    """`strides_as` for a layout that has elements."""
    dimensions, wanted = list(zip(shape, strides)), list(target)
    found: list[Any] = []
    while dimensions:
        count, step = dimensions.pop()
        if count == 1:
            continue
        while dimensions and (dimensions[-1][0] == 1 or dimensions[-1][1] == step * count):
            count = count * dimensions.pop()[0]
        covered: Any = 1
        while wanted and covered < count:
            found.insert(0, step * covered)
            covered = covered * wanted.pop()
        if covered != count:
            return None
    if any(n != 1 for n in wanted):
        return None
    return [1] * len(wanted) + found


def _layout(traced: Traced) -> tuple[Sizes, Sizes]:
    """Shape and strides; symbolic but for kinds of views that hardly meet a reshape."""
    memory = traced.memory
    root = memory.value if memory.input is None else memory.input
    shape: Sizes = list(root.type.shape)
    strides: Sizes = list(root.graph.strides.get(root) or _contiguous(shape))
    for op, _, attributes in traced.views:
        change = _CHANGES.get(op.name)
        if change is None or not change(shape, strides, attributes):
            return _of_example(traced)
    return shape, strides


def _of_example(traced: Traced) -> tuple[Sizes, Sizes]:
    """As in this call; the program then serves only these sizes and strides."""
    layout = traced.layout(exact=True)
    return list(layout.shape), list(layout.strides)


def _contiguous(shape: Sizes) -> Sizes:
    strides: Sizes = []
    step: Any = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step = step * size
    return strides


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


def _reshape(shape: Sizes, strides: Sizes, attributes: dict) -> bool:
    found = strides_as(shape, strides, attributes["shape"])
    if found is None:
        return False
    shape[:], strides[:] = attributes["shape"], found
    return True


def _unsqueeze(shape: Sizes, strides: Sizes, attributes: dict) -> bool:
    shape.insert(attributes["dim"], 1)
    strides.insert(attributes["dim"], 0)
    return True


def _squeeze(shape: Sizes, strides: Sizes, attributes: dict) -> bool:
    for dim in sorted(attributes["dims"], reverse=True):
        del shape[dim], strides[dim]
    return True


_CHANGES = {
    "permute": _permute,
    "slice": _slice,
    "select": _select,
    "reshape": _reshape,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
}
