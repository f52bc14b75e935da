"""Copies between devices as an op, so they are recorded and differentiated like any other.

In: a tensor and a device. Out: a tensor there. Called by `to`, `cpu`, `cuda`, `copy_`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.core.eager.meta import check_values
from tracejit.core.memory import array_module, device
from tracejit.core.ops.record import Op, apply
from tracejit.core.ops.types import TensorType


def _copied(xp: Any, array: Any, device: Any) -> Any:
    """Copy the elements to `device`, also if they are there already."""
    if device.type == "meta":
        return array  # only its type is used
    if device.type == "cpu":
        return array.copy() if isinstance(array, np.ndarray) else array.get()
    cupy = array_module(device)
    with cupy.cuda.Device(device.index or 0):
        return cupy.array(array)


TO_DEVICE = Op(
    "to_device", "extern", ("input",),
    infer=lambda input, device: TensorType(input.dtype, tuple(input.shape), device),
    eager=_copied,
    rules={"input": lambda grad, input_type: to_device(grad, input_type.device)},
    node_name="ToCopyBackward0",
)  # fmt: skip


def to_device(x: Any, place: Any) -> Any:
    """Return `x` on a device: itself if it is there already."""
    place = numbered(place)
    array_module(place)  # raises where there is no such device, also while recording
    if x.device == place:
        return x
    check_values(x)
    return apply(TO_DEVICE, (x,), {"device": place})


def numbered(place: device) -> device:
    """Return a device with its number; "cuda" without one is the current device."""
    if place.type != "cuda" or place.index is not None:
        return place
    cupy = array_module(place)
    return device("cuda", int(cupy.cuda.runtime.getDevice()))
