"""Bytes: devices, storages, the allocator that recycles them, and how many threads may work."""

from tracejit.core.memory.allocator import (
    Statistics,
    allocate,
    empty_cache,
    reset_peak,
    set_cache_limit,
    stats,
)
from tracejit.core.memory.devices import (
    CPU,
    META,
    DeviceUnavailable,
    array_module,
    as_device,
    device,
    get_default_device,
    set_default_device,
)
from tracejit.core.memory.storage import Storage, address, storage_of_array
from tracejit.core.memory.threads import get_num_threads, set_num_threads

__all__ = [
    "CPU", "META", "DeviceUnavailable", "Statistics", "Storage", "address", "allocate",
    "array_module", "as_device", "device", "empty_cache", "get_default_device",
    "get_num_threads", "reset_peak", "set_cache_limit", "set_default_device",
    "set_num_threads", "stats", "storage_of_array",
]  # fmt: skip
