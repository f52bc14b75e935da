"""What history within branches and loops keeps of tensors outside: none of it may be written before
a backward.

In: for each of two ways the program may take, memory and the results whose history keeps it. Out:
the error that eager mode raises where some was written and that way was taken; where a value
decides that, the value is needed. Made by `regions.py` and `loops.py` for their nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tracejit.capture.aliasing import Memory
from tracejit.eager.recording import active
from tracejit.eager.saved import Saved
from tracejit.eager.tensor import Tensor

Way = Mapping[Memory, tuple[set[int], Tensor]]  # memory -> numbers of results, a tensor over it


class KeptOutside:
    """Both ways, each with what is kept if it is taken."""

    holds_tensors = True

    def __init__(self, one: Way, other: Way):
        self.ways = [[(numbers, Saved(tensor), memory in one and memory in other)
                      for memory, (numbers, tensor) in way.items()] for way in (one, other)]

    def saved(self, always: bool) -> Iterator[Saved]:
        """What is kept, or what is so in any case."""
        for way in self.ways:
            yield from (saved for _, saved, both in way if both or not always)

    def intact(self) -> bool:
        return all(saved.intact() for saved in self.saved(False))

    def check(self, arriving: Collection[int], first: Tensor) -> None:
        """RuntimeError where what a backward from the results `arriving` needs was written, given
        whether the first way was taken."""
        written = [[saved for numbers, saved, _ in way
                    if not numbers.isdisjoint(arriving) and not saved.intact()]
                   for way in self.ways]
        if not any(written):
            return
        if not all(written) and first._storage is None:
            recorder: Any = active.recorder
            recorder.undecided()
        way = written[0] if all(written) or bool(first) else written[1]
        for saved in way:
            saved.unpack()
