"""Precedence: answers which pieces of work come before others, without walking the whole graph.

In: groups or units, linked as fusion finds which reads which. Out: answers about what depends on
what, and an order that runs. Called by `fuse.py`, `memory.py` and `schedule.py`.

Every piece has a rank, and whatever depends on it has a higher one. A new link that contradicts the
ranks renumbers only the pieces between its ends (Pearce and Kelly's dynamic topological order). A
question about two pieces looks only at ranks between theirs, from both ends at once.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar


class Ordered:
    """Piece of work between those it needs (`before`) and those that need it (`after`)."""

    def __init__(self, rank: int):
        self.rank = rank  # no two pieces of one graph have the same
        self.after: set[Any] = set()
        self.before: set[Any] = set()


Piece = TypeVar("Piece", bound=Ordered)


def link(first: Ordered, second: Ordered) -> None:
    """Make `second` come after `first` from now on. It must not come before it already."""
    if first is second or second in first.after:
        return
    first.after.add(second)
    second.before.add(first)
    if first.rank > second.rank:
        _renumber(first, second)


def _renumber(first: Ordered, second: Ordered) -> None:
    later = _within([second], "after", lambda x: x.rank <= first.rank)
    assert first not in later, "pieces of work depend on each other in a circle"
    earlier = _within([first], "before", lambda x: x.rank >= second.rank)
    moved = [*sorted(earlier, key=_rank), *sorted(later, key=_rank)]
    # They share out the ranks they had, so other pieces keep theirs.
    for piece, rank in zip(moved, sorted(x.rank for x in moved)):
        piece.rank = rank


def _within(start: list[Ordered], way: str, inside: Callable[[Ordered], bool]) -> set[Ordered]:
    found, stack = set(start), list(start)
    while stack:
        new = {x for x in getattr(stack.pop(), way) if x not in found and inside(x)}
        found |= new
        stack += new
    return found


def _rank(piece: Ordered) -> int:
    return piece.rank


def contract(kept: Ordered, gone: Ordered) -> None:
    """Give `kept` all links of `gone`, which has none afterwards. Nothing may lie between them."""
    before = sorted(gone.before - {kept}, key=_rank)  # in a set's order, which is by address,
    after = sorted(gone.after - {kept}, key=_rank)  # links could leave other ranks
    for x in gone.before:
        x.after.discard(gone)
    for x in gone.after:
        x.before.discard(gone)
    gone.before, gone.after = set(), set()
    for x in before:
        link(x, kept)
    for x in after:
        link(kept, x)


def reaches(start: Iterable[Ordered], goals: Collection[Ordered]) -> bool:
    """Return True if one of `goals` depends on one of `start`, or is one of them."""
    down, up = set(start), set(goals)
    if not down or not up:
        return False
    if not down.isdisjoint(up):
        return True
    low, high = min(map(_rank, down)), max(map(_rank, up))
    # Nearest to the other end first: a way that exists is mostly found by few steps.
    forward = [(-x.rank, x) for x in down if x.rank < high]
    backward = [(x.rank, x) for x in up if x.rank > low]
    heapq.heapify(forward)
    heapq.heapify(backward)
    spent = [0, 0]
    while forward and backward:
        costs = spent[0] + len(forward[0][1].after), spent[1] + len(backward[0][1].before)
        if costs[0] <= costs[1]:
            spent[0] = costs[0]
            new = {x for x in heapq.heappop(forward)[1].after if x.rank <= high} - down
            if not new.isdisjoint(up):
                return True
            down |= new
            for x in new:
                heapq.heappush(forward, (-x.rank, x))
        else:
            spent[1] = costs[1]
            new = {x for x in heapq.heappop(backward)[1].before if x.rank >= low} - up
            if not new.isdisjoint(down):
                return True
            up |= new
            for x in new:
                heapq.heappush(backward, (x.rank, x))
    return False


def is_between(first: Ordered, second: Ordered) -> bool:
    """Return True if a third piece comes after one of the two and before the other."""
    if first.rank > second.rank:
        first, second = second, first
    high = second.rank
    return reaches([x for x in first.after if x.rank < high], [second])


def in_order(pieces: Sequence[Piece], priority: Callable[[Piece], Any]) -> list[Piece]:
    """Return the pieces so that each comes before those that need it, by priority among those
    ready."""
    waits = {piece: len(piece.before) for piece in pieces}
    ready = [(priority(piece), piece.rank, piece) for piece in pieces if not waits[piece]]
    heapq.heapify(ready)
    order: list[Piece] = []
    while ready:
        piece = heapq.heappop(ready)[2]
        order.append(piece)
        for later in piece.after:
            waits[later] -= 1
            if not waits[later]:
                heapq.heappush(ready, (priority(later), later.rank, later))
    assert len(order) == len(pieces), "pieces of work depend on each other in a circle"
    return order
