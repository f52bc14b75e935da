"""Places of temporaries in the arena: two share bytes only if their lives do not meet.

In: (size, first instruction, last instruction) of each temporary, sizes bound. Out: an offset for
each and the arena's size. Called by `binding`, once for each. Best fit over a list of holes, in
order of first use.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

ALIGNMENT = 64


class Life(NamedTuple):
    """Temporary: its bytes, and the instructions that write and read it, first and last."""

    nbytes: int
    first: int
    last: int


class Plan(NamedTuple):
    """Offset of each temporary in bytes, in the order given, and the arena's size in bytes."""

    offsets: list[int]
    nbytes: int


def plan(lives: Sequence[Life]) -> Plan:
    """Place every temporary on a 64-byte boundary.

    >>> plan([Life(100, 0, 1), Life(60, 1, 2), Life(128, 2, 3)])
    Plan(offsets=[0, 128, 0], nbytes=192)
    """
    offsets = [0] * len(lives)
    holes: list[tuple[int, int]] = []  # (offset, size), by offset, never touching
    living: list[tuple[int, int, int]] = []  # (last, offset, size)
    end = 0
    for i in sorted(range(len(lives)), key=lambda i: (lives[i].first, -lives[i].nbytes)):
        while living and living[0][0] < lives[i].first:
            _, offset, size = heapq.heappop(living)
            _release(holes, offset, size)
        size = max(1, -(-lives[i].nbytes // ALIGNMENT)) * ALIGNMENT
        found = min((h for h in holes if h[1] >= size), key=lambda h: h[1], default=None)
        if found is not None:
            place = holes.index(found)
            rest = (found[0] + size, found[1] - size)
            holes[place : place + 1] = [rest] if rest[1] else []
            offset = found[0]
        elif holes and holes[-1][0] + holes[-1][1] == end:
            offset, _ = holes.pop()  # the last hole, made longer
            end = offset + size
        else:
            offset, end = end, end + size
        offsets[i] = offset
        heapq.heappush(living, (lives[i].last, offset, size))
    return Plan(offsets, end)


def _release(holes: list[tuple[int, int]], offset: int, size: int) -> None:
    """Make bytes a hole, joined with the holes beside it."""
    place = next((i for i, h in enumerate(holes) if h[0] > offset), len(holes))
    if place < len(holes) and offset + size == holes[place][0]:
        size += holes.pop(place)[1]
    if place > 0 and holes[place - 1][0] + holes[place - 1][1] == offset:
        before = holes.pop(place - 1)
        offset, size, place = before[0], before[1] + size, place - 1
    holes.insert(place, (offset, size))
