"""Batches in memory that is pinned for copies to a GPU.

In: tensors in mappings, tuples and lists. Out: the same structure of pinned tensors; on the CPU
these are the tensors themselves. Called by users, as `utils.data._utils.pin_memory`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any


def pin_memory(data: Any, device: Any = None) -> Any:
    """Return the data with the tensors within pinned; objects with a `pin_memory` pin themselves.

    >>> import tracejit
    >>> pin_memory({"x": [tracejit.ones(1)], "name": "a"})
    {'x': [tensor([1.])], 'name': 'a'}
    """
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return _mapping(data, {key: pin_memory(x, device) for key, x in data.items()})
    if isinstance(data, tuple):
        items = [pin_memory(x, device) for x in data]
        return type(data)(*items) if hasattr(data, "_fields") else type(data)(items)
    if isinstance(data, Sequence):
        return _sequence(data, [pin_memory(x, device) for x in data])
    return data


def _mapping(like: Any, items: dict) -> Any:
    """Return a mapping of the same type, as far as the type takes items."""
    try:
        if isinstance(like, MutableMapping):
            found = copy.copy(like)
            found.update(items)
            return found
        return type(like)(items)
    except TypeError:
        return items


def _sequence(like: Any, items: list) -> Any:
    """Return a sequence of the same type, as far as the type takes items."""
    try:
        if isinstance(like, MutableSequence):
            found = copy.copy(like)
            for number, item in enumerate(items):
                found[number] = item
            return found
        return type(like)(items)
    except TypeError:
        return items
