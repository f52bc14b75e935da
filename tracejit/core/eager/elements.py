"""Tensors of one element within nested sequences of numbers: each counts as a number of its dtype.

In: the data to make a tensor of. Out: the same data with Python numbers, and their common dtype.
Called where tensors are made of Python data.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from tracejit.core.eager.state import TensorState
from tracejit.core.ops.types import (
    FLOATING,
    INTEGER,
    dtype,
    dtype_of_number,
    dtype_of_numpy,
    promote_types,
)

_LISTS = (list, tuple)
_MOST_NESTED = 64  # dimensions that an array may have


def holds_tensors(data: Any, depth: int = 0) -> bool:
    """Return True if a nested sequence holds a tensor. Raises TypeError for one that holds
    itself."""
    if not isinstance(data, _LISTS):
        return False
    if depth > _MOST_NESTED:
        raise TypeError("new(): self-referential lists are incompatible")
    kinds = set(map(type, data))
    return any(issubclass(kind, TensorState) for kind in kinds) or (
        any(issubclass(kind, _LISTS) for kind in kinds)
        and any(holds_tensors(each, depth + 1) for each in data))


def read_elements(data: Any, kind: dtype | None) -> tuple[Any, dtype]:
    """Return (nested lists of numbers, `kind` or the dtype that all promote to).

    The nesting of the first number decides at which depth numbers stand. Raises ValueError for a
    tensor of several elements there, TypeError for a fraction in an integer dtype.

    >>> import tracejit
    >>> read_elements([tracejit.ones(1, 1), 2], None)
    ([1.0, 2], tracejit.float32)
    """
    depth, first = 0, data
    while isinstance(first, _LISTS) or isinstance(first, np.ndarray) and first.ndim:
        depth, first = depth + 1, first[0] if len(first) else None
    if kind is None:
        kind = common_dtype(data)
    return _read(data, depth, kind.category == INTEGER), kind


def common_dtype(data: Any) -> dtype:
    """Return the dtype to which all elements of nested sequences promote."""
    return functools.reduce(promote_types, set(_dtypes(data)))


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
    single = data.numel() == 1
    if integral and not (single and data._dtype.category < FLOATING):
        raise TypeError("only integer tensors of a single element can be converted to an index")
    if not single:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return data.item()
