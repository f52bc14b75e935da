"""Tensors without values: on the device "meta" ops give dtypes, shapes and strides alone.

In: an op with operands there, and its results' types. Out: results over address space without
memory behind it (`memory.allocate`), so views are made as everywhere. What needs a value raises
PyTorch's errors. Called by `dispatch`, by transfers and where tensors leave for Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.core.eager.state import NO_DATA, TensorState, make
from tracejit.core.memory import META, allocate, device
from tracejit.core.ops.movement import reshaped_view
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import numel
from tracejit.core.ops.types import TensorType

NO_ITEM = "Tensor.item() cannot be called on meta tensors"


def is_meta(x: Any) -> bool:
    """Return True for a tensor without values, and for the device of such tensors."""
    place = x._device if isinstance(x, TensorState) else x
    return isinstance(place, device) and place.type == "meta"


def tensor_of(kind: TensorType) -> Any:
    """Make a contiguous tensor of a type."""
    storage = allocate(numel(kind.shape) * kind.dtype.itemsize, META)
    return make(storage, 0, tuple(kind.shape), None, kind.dtype, META)


def tensors_of(op: Op, types: Any) -> Any:
    """Make the results of an op that makes no view. Raises NotImplementedError if their sizes
    depend on values."""
    if op.dynamic:
        raise NotImplementedError(f"{op.name}: the sizes of its result depend on values, which "
                                  "meta tensors do not have")
    return tensor_of(types) if type(types) is TensorType else tuple(map(tensor_of, types))


def viewed(op: Op, arrays: list, attributes: dict) -> np.ndarray | None:
    """Return the array that a view op gives. None if a reshape has to copy."""
    if op.name != "reshape":
        found: np.ndarray = op.eager(np, *arrays, **attributes)  # type: ignore[misc]
        return found
    return reshaped_view(arrays[0], attributes["shape"])


def check_values(x: TensorState) -> None:
    """Raise NotImplementedError for a tensor without values."""
    if x._device.type == "meta":
        raise NotImplementedError(NO_DATA)


def check_item(x: TensorState) -> None:
    """Raise RuntimeError for a tensor without values whose element the program asks for."""
    if x._device.type == "meta":
        raise RuntimeError(NO_ITEM)
