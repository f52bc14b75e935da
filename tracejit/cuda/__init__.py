"""CUDA devices and facts about them; PyTorch's `torch.cuda`.

In: device numbers. Out: facts from the driver, through CuPy, which is imported when code asks for
the first of them. Without CuPy or a GPU `is_available()` is False. Other functions raise
`DeviceUnavailable` then, and say what to install.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from typing import Any, NamedTuple

from tracejit.core.eager.tensor_types import CUDA_TYPES
from tracejit.core.memory.devices import DeviceUnavailable, array_module, as_device
from tracejit.core.memory.devices import device as Device

_initialized = False  # whether devices have random states of their own to be saved
_LATER = {
    **dict.fromkeys(
        ("empty_cache", "max_memory_allocated", "max_memory_cached", "max_memory_reserved",
         "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved", "memory_stats",
         "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_memory_stats"),
        "memory",
    ),
    **dict.fromkeys(
        ("get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all",
         "seed", "seed_all", "set_rng_state", "set_rng_state_all"),
        "random",
    ),
    **dict.fromkeys(
        ("CUDAGraph", "Event", "ExternalStream", "Stream", "StreamContext", "current_stream",
         "default_stream", "graph",
         "is_current_stream_capturing", "stream"),
        "streams",
    ),
}  # fmt: skip
_SUBMODULES = ("amp", "memory", "random", "streams")
__all__ = [  # noqa: PLE0604
    "DeviceUnavailable", "OutOfMemoryError", "current_device", "device", "device_count",
    "device_of", "get_arch_list", "get_device_capability", "get_device_name",
    "get_device_properties", "init", "is_available", "is_bf16_supported", "is_initialized",
    "is_tf32_supported", "set_device", "synchronize", *_LATER,
]  # fmt: skip


def device_count() -> int:
    """Return the number of CUDA devices that can be used: 0 without CuPy or a driver."""
    # Looks for the package without importing it, which takes seconds.
    if importlib.util.find_spec("cupy") is None:
        return 0
    try:
        return int(_runtime().getDeviceCount())
    except DeviceUnavailable:
        return 0


def is_available() -> bool:
    """Return True if tensors can live on a CUDA device here."""
    return device_count() > 0


def _runtime() -> Any:
    return array_module(Device("cuda")).cuda.runtime


def _number(where: Any) -> int:
    """Return the number of a device; None is the current one."""
    place = as_device("cuda" if where is None else where)
    if place.type != "cuda" or place.index is None:
        raise ValueError(f"Expected a cuda device, but got: {place}")
    return place.index


def current_device() -> int:
    """Return the number of the device that plain "cuda" means."""
    return int(_runtime().getDevice())


def set_device(device: Any) -> None:
    """Make a device the one that plain "cuda" means."""
    _runtime().setDevice(_number(device))


def synchronize(device: Any = None) -> None:
    """Wait until everything started on a device has finished."""
    module = array_module(Device("cuda"))
    with module.cuda.Device(_number(device)):
        module.cuda.runtime.deviceSynchronize()


def init() -> None:
    """Do nothing. DeviceUnavailable without a device."""
    _runtime()


def is_initialized() -> bool:
    """Return True if a device was used, or could have been: CuPy is loaded and finds one."""
    return "cupy" in sys.modules and is_available()


def get_device_name(device: Any = None) -> str:
    """Return the driver's name of a device."""
    return str(_facts(device)["name"].decode())


def _facts(device: Any) -> dict[str, Any]:
    number = _number(device)
    return _runtime().getDeviceProperties(number)


class _CudaDeviceProperties(NamedTuple):
    """Facts about a device from the driver; memory is in bytes."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int


def get_device_properties(device: Any = None) -> _CudaDeviceProperties:
    """Return a device's name, generation, memory and number of processors. DeviceUnavailable
    without one."""
    found = _facts(device)
    return _CudaDeviceProperties(
        found["name"].decode(), found["major"], found["minor"], found["totalGlobalMem"],
        found["multiProcessorCount"],
    )  # fmt: skip


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return a device's generation, as (major, minor). DeviceUnavailable without one."""
    found = get_device_properties(device)
    return found.major, found.minor


def get_arch_list() -> list[str]:
    """Return the generations for which kernels can be made: those of the devices here."""
    # Kernels are compiled for the device at hand, when they are needed.
    found = {get_device_capability(number) for number in range(device_count())}
    return [f"sm_{major}{minor}" for major, minor in sorted(found)]


def is_tf32_supported() -> bool:
    """Return False: products are never of tf32 numbers, as they are as precise as float32."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return False: no device computes in bfloat16 by itself; numbers are widened and rounded."""
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


class device_of(device):
    """Context: plain "cuda" means the device of a tensor inside; nothing for one on the CPU."""

    def __init__(self, obj: Any) -> None:
        self.place = obj.device

    def __enter__(self) -> None:
        if self.place.type == "cuda":
            super().__init__(self.place)
            super().__enter__()

    def __exit__(self, *exc: object) -> None:
        if self.place.type == "cuda":
            super().__exit__(*exc)


globals().update(CUDA_TYPES)


@functools.cache
def _out_of_memory() -> type[Exception]:
    """Return the class of errors for a device with too little memory: CuPy's, where there is
    one."""
    if is_available():
        return array_module(Device("cuda")).cuda.memory.OutOfMemoryError
    return type("OutOfMemoryError", (RuntimeError,), {"__module__": "tracejit"})


def __getattr__(name: str) -> Any:
    if name == "OutOfMemoryError":
        return _out_of_memory()
    if name in _SUBMODULES:
        return importlib.import_module(f"tracejit.cuda.{name}")
    if name in _LATER:
        return getattr(importlib.import_module(f"tracejit.cuda.{_LATER[name]}"), name)
    raise AttributeError(f"module 'tracejit.cuda' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_SUBMODULES, "OutOfMemoryError"})
