"""The amount of checks and messages about collectives; PyTorch's `DebugLevel`.

In: the variable TORCH_DISTRIBUTED_DEBUG, or a program's call. Out: the level, which programs read.
Called by `collectives`, which compares calls at level DETAIL; errors name ranks at every level.
"""

from __future__ import annotations

import os
from enum import Enum


class DebugLevel(Enum):
    """Level of checks: OFF, INFO or DETAIL. At DETAIL the calls of all processes are compared.

    >>> list(DebugLevel)
    [<DebugLevel.OFF: 0>, <DebugLevel.INFO: 1>, <DebugLevel.DETAIL: 2>]
    """

    OFF, INFO, DETAIL = range(3)


_LEVEL: list[DebugLevel] = []


def get_debug_level() -> DebugLevel:
    """Return the level: the one that was set, or that of TORCH_DISTRIBUTED_DEBUG.

    >>> get_debug_level()
    <DebugLevel.OFF: 0>
    """
    if not _LEVEL:
        set_debug_level_from_env()
    return _LEVEL[-1]


def set_debug_level(level: DebugLevel) -> None:
    """Set the level. Raises TypeError for what is none.

    level  a `DebugLevel`

    >>> set_debug_level(DebugLevel.INFO)
    >>> get_debug_level()
    <DebugLevel.INFO: 1>
    >>> set_debug_level(DebugLevel.OFF)
    """
    if not isinstance(level, DebugLevel):
        raise TypeError(f"set_debug_level: expected a DebugLevel, got {type(level).__name__}")
    _LEVEL[:] = [level]


def set_debug_level_from_env() -> None:
    """Take the level of the variable TORCH_DISTRIBUTED_DEBUG, OFF where it is not set.

    Raises RuntimeError for a value that is no level.

    >>> set_debug_level_from_env()
    >>> get_debug_level().name == os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF")
    True
    """
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    _LEVEL[:] = [DebugLevel[name]]
