"""Joins mappings of memory that loaded kernels take, of which Linux allows a process 65,530.

In: addresses of code. Out: nothing. LLVM maps code and constants of each load apart. `join` makes
pages of constants executable, which leaves them read-only, so that Linux makes one mapping of both.
Called by `loader`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable
from typing import NamedTuple

PROT_READ, PROT_EXEC = 1, 4


class Mapping(NamedTuple):
    """Stretch of a process's memory, to `end` exclusive."""

    start: int
    end: int
    allows: str  # as "r-xp"
    anonymous: bool


def mappings() -> list[Mapping]:
    """Return the mappings of this process, by address; none where the system does not list them."""
    found = []
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                span, allows, _, _, inode, *_ = line.split()
                start, end = (int(x, 16) for x in span.split("-"))
                found.append(Mapping(start, end, allows, inode == "0"))
    except OSError:
        return []
    return found


def join(addresses: Iterable[int]) -> None:
    """Join mappings of code at these addresses with the constants beside them."""
    if sys.platform != "linux":
        return
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    at, found = sorted(addresses), mappings()
    number = 0
    for before, code, after in zip(found, found[1:], found[2:]):
        while number < len(at) and at[number] < code.start:
            number += 1
        if number == len(at) or at[number] >= code.end or code.allows != "r-xp":
            continue
        for near in (before, after):
            beside = near.end == code.start or near.start == code.end
            if beside and near.anonymous and near.allows == "r--p":
                protect(near.start, near.end - near.start, PROT_READ | PROT_EXEC)
