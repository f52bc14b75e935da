"""Refuses what no memory holds, before anything is taken.

In: how many bytes a result needs. Out: nothing, or `OutOfMemory`. Called by the dispatcher of eager
mode, for results that may be much larger than their operands.
"""

from __future__ import annotations

import os
from functools import lru_cache

_ALWAYS_TRIED = 1 << 30  # smaller results are not worth the question


class OutOfMemory(RuntimeError, MemoryError):
    """No memory holds a result: PyTorch's RuntimeError, and Python's MemoryError."""


def refusal(nbytes: int) -> OutOfMemory:
    """Return the error of so many bytes.

    >>> str(refusal(8))
    "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."
    """
    return OutOfMemory(
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate "
        f"{nbytes} bytes."
    )


def must_fit(nbytes: int) -> None:
    """Raise OutOfMemory if the machine, or the process's limit, cannot hold so many bytes.

    >>> must_fit(1 << 20)
    """
    if nbytes > _ALWAYS_TRIED and nbytes > min(_of_machine(), _of_process()):
        raise refusal(nbytes)


@lru_cache(1)
def _of_machine() -> int:
    """Return all memory of the machine with its swap. An unknown amount is no limit."""
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":", 1) for line in file)
        return sum(int(lines[name].split()[0]) << 10 for name in ("MemTotal", "SwapTotal"))
    except (OSError, KeyError, ValueError):
        return 1 << 62


def _of_process() -> int:
    """Return the bytes that the limit of the address space leaves."""
    try:
        import resource
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return 1 << 62
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError, ValueError):
        return 1 << 62
    return max(int(limit) - used, 0)
