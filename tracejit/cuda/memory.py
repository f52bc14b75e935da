"""Memory use of devices; PyTorch's `torch.cuda.memory`.

In: devices. Out: bytes, as CuPy's pool counts them; 0 without a device.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any

from tracejit import cuda
from tracejit.core.eager.recording import active
from tracejit.core.memory.devices import array_module, device
from tracejit.core.ops import sealing as _sealing

__all__ = [
    "empty_cache", "max_memory_allocated", "max_memory_cached", "max_memory_reserved",
    "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved", "memory_stats",
    "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_memory_stats",
]  # fmt: skip

_most: dict[int, int] = {}  # bytes that a device's pool held before it gave some back


def empty_cache() -> None:
    """Give memory that nothing uses back to the driver; without a device nothing happens."""
    if cuda.is_available():
        # The pool forgets what it gives back, and the maximum is taken from its present size.
        _note_most(cuda.current_device())
        array_module(device("cuda")).get_default_memory_pool().free_all_blocks()


def memory_allocated(device: Any = None) -> int:
    """Return the bytes that are in use on a device; 0 without one."""
    return _pooled("used_bytes", device)


def memory_reserved(device: Any = None) -> int:
    """Return the bytes that were taken from the driver, in use or not; 0 without a device."""
    return _pooled("total_bytes", device)


def max_memory_reserved(device: Any = None) -> int:
    """Return the most bytes that were taken from the driver since the last reset; 0 without a
    device."""
    return _note_most(cuda._number(device)) if cuda.is_available() else 0


def max_memory_allocated(device: Any = None) -> int:
    """Return `max_memory_reserved`, a bound: the pool does not count the most bytes that were in
    use."""
    return max_memory_reserved(device)


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """Return bytes in use and taken from the driver, by PyTorch's names; {} without a device."""
    if not cuda.is_available():
        return OrderedDict()
    most = max_memory_reserved(device)
    return OrderedDict({
        "allocated_bytes.all.current": memory_allocated(device),
        "allocated_bytes.all.peak": most,
        "reserved_bytes.all.current": memory_reserved(device),
        "reserved_bytes.all.peak": most,
    })  # fmt: skip


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let maxima start again from the present values. DeviceUnavailable without a device."""
    cuda.init()
    _most[cuda._number(device)] = 0


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the bytes that are free on a device, and all it has. DeviceUnavailable without a
    device."""
    number = cuda._number(device)
    with cuda.device(number):
        free, total = cuda._runtime().memGetInfo()
    return int(free), int(total)


def memory_cached(device: Any = None) -> int:
    """Return `memory_reserved`, under its older name."""
    _renamed("memory_cached", "memory_reserved")
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """Return `max_memory_reserved`, under its older name."""
    _renamed("max_memory_cached", "max_memory_reserved")
    return max_memory_reserved(device)


def reset_max_memory_allocated(device: Any = None) -> None:
    """Call `reset_peak_memory_stats`, under its older name."""
    _resets_all("reset_max_memory_allocated")
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: Any = None) -> None:
    """Call `reset_peak_memory_stats`, under its older name."""
    _resets_all("reset_max_memory_cached")
    reset_peak_memory_stats(device)


def _renamed(old: str, new: str) -> None:
    warnings.warn(f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`", FutureWarning,
                  stacklevel=3)


def _resets_all(old: str) -> None:
    warnings.warn(f"torch.cuda.{old} now calls torch.cuda.reset_peak_memory_stats, which resets "
                  "/all/ peak memory stats.", FutureWarning, stacklevel=3)


def _note_most(number: int) -> int:
    _most[number] = max(_most.get(number, 0), _pooled("total_bytes", number))
    return _most[number]


def _pooled(what: str, where: Any) -> int:
    if not cuda.is_available():
        return 0
    if active.tracer is not None:
        active.tracer.break_graph(None, "the function asks how much memory is in use")
    with cuda.device(where):
        return int(getattr(array_module(device("cuda")).get_default_memory_pool(), what)())


_sealing.seal_all(globals())
