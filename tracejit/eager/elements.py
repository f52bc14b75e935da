"""Tensors among the numbers of nested sequences: each is one number of its dtype.

In: what a tensor is to be made of. Out: the same with Python numbers, and the dtype of them all.
Called where tensors are made of Python data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tracejit.eager.state import TensorState
from tracejit.ops.types import (
    FLOATING,
    INTEGER,
    dtype,
    dtype_of_number,
    dtype_of_numpy,
    promote_types,
)

_LISTS = (list, tuple)


def holds_tensors(data: Any) -> bool:
    """Whether a nested sequence has a tensor in it."""
    if not isinstance(data, _LISTS):
        return False
    kinds = set(map(type, data))
    return any(issubclass(kind, TensorState) for kind in kinds) or (
        any(issubclass(kind, _LISTS) for kind in kinds) and any(map(holds_tensors, data)))


def read_elements(data: Any, kind: dtype | None) -> tuple[Any, dtype]:
    """(nested lists of numbers, `kind` or what all their dtypes promote to).

    How deep the lists are tells the way to the first number. ValueError for a tensor of several
    elements where a number is due, TypeError for a fraction as an integer.

    >>> import tracejit
    >>> read_elements([tracejit.ones(1, 1), 2], None)
    ([1.0, 2], tracejit.float32)
    """
    depth, first = 0, data
    while isinstance(first, _LISTS) or isinstance(first, np.ndarray) and first.ndim:
        depth, first = depth + 1, first[0] if len(first) else None
    if kind is None:
        found: dtype | None = None
        for each in _dtypes(data):
            found = each if found is None else promote_types(found, each)
        assert found is not None  # there is a tensor
        return _read(data, depth, False), found
    return _read(data, depth, kind.category <= INTEGER), kind


def _dtypes(data: Any) -> Iterator[dtype]:
    if isinstance(data, TensorState):
        yield data._dtype
    elif isinstance(data, (np.ndarray, np.generic)):
        yield dtype_of_numpy(data.dtype)
    elif isinstance(data, _LISTS):
        for each in data:
            yield from _dtypes(each)
    else:
        yield dtype_of_number(data)


def _read(data: Any, depth: int, integral: bool) -> Any:
    is_tensor = isinstance(data, TensorState)
    if depth and (is_tensor or isinstance(data, (*_LISTS, np.ndarray))):
        return [_read(each, depth - 1, integral) for each in data]
    if not is_tensor:
        return data
    if data.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    if integral and data._dtype.category >= FLOATING:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return data.item()
