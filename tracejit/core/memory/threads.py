"""Number of threads that kernels may use.

In: the process's affinity, its cgroup's CPU quota, `TRACEJIT_NUM_THREADS`, `set_num_threads`.
Out: one number, and calls of `watches` when it changes. Results never depend on it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path

from tracejit import config
from tracejit.config import flags

watches: list[Callable[[], None]] = []  # called when the number changes
_GROUPS = Path("/sys/fs/cgroup")
_chosen: int | None = None
_available: int | None = None
_told: int | None = None


def get_num_threads() -> int:
    """Threads that a program runs on, the calling one included.

    >>> get_num_threads() >= 1
    True
    """
    global _available
    if _chosen is not None:
        return _chosen
    if _available is None:
        _available = available_threads()
    return min(flags.num_threads, _available) if flags.num_threads else _available


def set_num_threads(count: int | None) -> None:
    """Use `count` threads from the next run on; None: what affinity, quota and the flag allow.

    Raises ValueError unless `count` is a positive int.

    >>> set_num_threads(1); get_num_threads()
    1
    >>> set_num_threads(None)
    """
    global _chosen
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise ValueError(f"set_num_threads: expected a positive int, got {count!r}")
    _chosen = count
    _tell()


def _tell() -> None:
    """Call the watches if the number has changed since the last time."""
    global _told
    count = get_num_threads()
    if count != _told:
        _told = count
        for watch in watches:
            watch()


config.watches.append(_tell)


def available_threads() -> int:
    """Return the CPUs this process may run on, or its cgroup's quota, rounded up, if that is
    less."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cgroup_quota(_GROUPS)
    return max(1, min(cpus, math.ceil(quota))) if quota else max(1, cpus)


def cgroup_quota(root: Path) -> float | None:
    """CPUs that the cgroup (version 2, else 1) allows; None: no limit, or no cgroup here."""
    try:
        allowed, period = (root / "cpu.max").read_text().split()
        return None if allowed == "max" else int(allowed) / int(period)
    except (OSError, ValueError):
        return _quota_of_version_1(root)


def _quota_of_version_1(root: Path) -> float | None:
    try:
        allowed = int((root / "cpu/cpu.cfs_quota_us").read_text())
        period = int((root / "cpu/cpu.cfs_period_us").read_text())
    except (OSError, ValueError):
        return None
    return allowed / period if allowed > 0 and period > 0 else None
