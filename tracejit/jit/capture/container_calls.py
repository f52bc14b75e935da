"""Functions that rewritten code calls for containers: new ones, items, attributes, `+=`.

In: lists, dicts, sets and tensors, keys, values. Out: for plain Python, exactly what Python does.
A region refuses what changes an outer object, but for items that its loop carries; a tensor that
may be another is identified. Called by rewritten code, as names of `control.py`.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable
from typing import Any

from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.indexing import update_through_mask
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.looking import has_in_class, is_a, is_exactly
from tracejit.jit.capture.loop_contents import OUTER_ITEM, may_write_item
from tracejit.jit.capture.loop_items import item_at, mentions_index, store_at
from tracejit.jit.capture.rolled import StackedList
from tracejit.jit.capture.sharing import known_as, known_ones

_INPLACE = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv,
    "//=": operator.ifloordiv, "%=": operator.imod, "**=": operator.ipow, "@=": operator.imatmul,
    "&=": operator.iand, "|=": operator.ior, "^=": operator.ixor, "<<=": operator.ilshift,
    ">>=": operator.irshift,
}  # fmt: skip


def control_tracer() -> Any:
    """Return the tracer that can record control flow, or None; a mapped function has none."""
    tracer: Any = active.tracer
    return None if tracer is None or tracer.mapped else tracer


def new_container(container: Any) -> Any:
    """Register a container just made, which its region may change, and return what stands for it.

    An empty list becomes a `StackedList`; in a set or dict, tensors are identified.
    """
    tracer: Any = active.tracer
    if tracer is None:
        return container
    if type(container) is list and not container and not tracer.root.speculation_depth:
        container = StackedList()
        tracer.root.stacked_lists.append(weakref.ref(container))
    if type(container) is set:
        container = set(known_ones(tracer, container))
    elif type(container) is dict:
        container = dict(zip(known_ones(tracer, container), container.values()))
    if tracer.root.speculation_depth:
        tracer.created_here.append(container)
    return container


def attribute_owner(value: Any) -> Any:
    """Return the object of which code sets or deletes an attribute; identify a tensor."""
    tracer = control_tracer()
    if tracer is None or not is_a(value, Tensor):
        return value
    return known_as(tracer, value)


def get_item(container: Any, key: Any) -> Any:
    """Compute `container[key]`."""
    if has_in_class(container, "__missing__"):
        _changes(container, "it may add a missing key")
    if mentions_index(key) and is_a(container, Tensor):
        return item_at(container, key)
    return container[_key(container, key)]


def set_item(container: Any, key: Any, item: Any) -> None:
    """Do `container[key] = item`."""
    if is_a(container, Tensor) and mentions_index(key):
        store_at(container, key, item)
        return
    if _is_effect(container) and not may_write_item(active.tracer, container, key):
        raise RegionRefused(OUTER_ITEM)
    container[_key(container, key)] = item


def item_to_update(container: Any, key: Any) -> Any:
    """Compute `container[key]` for a statement that then assigns this item."""
    if _is_effect(container):
        may_write_item(active.tracer, container, key)  # before `+=` writes the item in place
    return get_item(container, key)


def _key(container: Any, key: Any) -> Any:
    """Return a key as a dict finds it: a tensor by its identity."""
    tracer = control_tracer()
    if tracer is None or not is_a(container, dict) or not is_a(key, Tensor):
        return key
    return known_as(tracer, key)


def update_item(container: Any, key: Any, symbol: str, other: Callable[[], Any]) -> None:
    """Do `container[key] += other()` and the like; without a selection if `key` is a mask."""
    if is_a(container, Tensor) and control_tracer() is not None:
        if update_through_mask(container, key, _INPLACE[symbol], other()):
            return
    set_item(container, key, inplace(symbol, item_to_update(container, key), other()))


def inplace(symbol: str, target: Any, other: Any) -> Any:
    """Do `target += other` and the like; return the new value of the target."""
    if symbol == "+=" and _lists(target, other) and _is_effect(target):
        append = active.tracer.appending(target)  # type: ignore[union-attr]
        for element in other:
            append(element)
        return target
    if not is_a(target, (Tensor, int, float, complex, str, bytes, tuple)):
        _changes(target, f"it changes an outer object in place ({symbol})")
    return _INPLACE[symbol](target, other)


def _lists(*values: Any) -> bool:
    return all(is_exactly(value, (list, StackedList)) for value in values)


def _is_effect(container: Any) -> bool:
    """Return True if a change of the container in a region is seen outside."""
    tracer: Any = active.tracer
    if tracer is None or not tracer.root.speculation_depth or is_a(container, Tensor):
        return False
    return not tracer.is_created_here(container)


def _changes(container: Any, what: str) -> None:
    if _is_effect(container):
        raise RegionRefused(what)
