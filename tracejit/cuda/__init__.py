"""CUDA devices: what is there; PyTorch's `torch.cuda`.

In: device numbers. Out: facts from the driver, through CuPy, which is imported when the first of
them is asked for. Without CuPy or a GPU `is_available()` is False and the others raise
`DeviceUnavailable`, saying what to install.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from tracejit.eager.tensor_types import CUDA_TYPES
from tracejit.memory.devices import DeviceUnavailable, array_module, as_device
from tracejit.memory.devices import device as Device
from tracejit.ops.generators import manual_seed as _manual_seed

__all__ = [
    "DeviceUnavailable",
    "current_device",
    "device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "is_available",
    "is_bf16_supported",
    "manual_seed",
    "manual_seed_all",
    "memory_allocated",
    "memory_reserved",
    "set_device",
    "synchronize",
]
_initialized = False  # whether devices have random states of their own to be saved


def device_count() -> int:
    """How many CUDA devices can be used: 0 without CuPy or a driver."""
    if importlib.util.find_spec("cupy") is None:
        return 0
    try:
        return int(_runtime().getDeviceCount())
    except DeviceUnavailable:
        return 0


def is_available() -> bool:
    """Whether tensors can live on a CUDA device here."""
    return device_count() > 0


def _runtime() -> Any:
    return array_module(Device("cuda")).cuda.runtime


def _number(where: Any) -> int:
    """The number of a device; None is the current one."""
    place = as_device("cuda" if where is None else where)
    if place.type != "cuda" or place.index is None:
        raise ValueError(f"Expected a cuda device, but got: {place}")
    return place.index


def current_device() -> int:
    """The number of the device that plain "cuda" means."""
    return int(_runtime().getDevice())


def set_device(device: Any) -> None:
    """Make a device the one that plain "cuda" means."""
    _runtime().setDevice(_number(device))


def synchronize(device: Any = None) -> None:
    """Wait until everything started on a device has finished."""
    module = array_module(Device("cuda"))
    with module.cuda.Device(_number(device)):
        module.cuda.runtime.deviceSynchronize()


def get_device_name(device: Any = None) -> str:
    """What the driver calls a device."""
    number = _number(device)
    return str(_runtime().getDeviceProperties(number)["name"].decode())


def empty_cache() -> None:
    """Give memory that nothing uses back to the driver; without a device nothing happens."""
    if is_available():
        array_module(Device("cuda")).get_default_memory_pool().free_all_blocks()


def memory_allocated(device: Any = None) -> int:
    """Bytes that are in use on a device; 0 without one."""
    return _pooled("used_bytes", device)


def memory_reserved(device: Any = None) -> int:
    """Bytes that were taken from the driver, in use or not; 0 without a device."""
    return _pooled("total_bytes", device)


def _pooled(what: str, device: Any) -> int:
    if not is_available():
        return 0
    module = array_module(Device("cuda"))
    with module.cuda.Device(_number(device)):
        return int(getattr(module.get_default_memory_pool(), what)())


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether a device computes in bfloat16 by itself: no, numbers are widened and rounded."""
    return False


class device:
    """Context: plain "cuda" means this device inside."""

    def __init__(self, device: Any) -> None:
        self.number = _number(device)

    def __enter__(self) -> None:
        self._before = current_device()
        set_device(self.number)

    def __exit__(self, *exc: object) -> None:
        set_device(self._before)


def manual_seed(seed: int) -> None:
    """Seed the one generator there is: random numbers are the same on every device."""
    _manual_seed(seed)


manual_seed_all = manual_seed
globals().update(CUDA_TYPES)


def __getattr__(name: str) -> Any:
    if name == "amp":
        return importlib.import_module("tracejit.cuda.amp")
    raise AttributeError(f"module 'tracejit.cuda' has no attribute {name!r}")
