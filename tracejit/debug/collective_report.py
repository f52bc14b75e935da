"""Collectives of a program: what runs between the start of each and its wait.

In: a compiled segment. Out: one `CollectiveReport` for each collective. Called by `report`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tracejit.jit.ir.sizes import evaluate
from tracejit.jit.lowering.library_collectives import COLLECTIVES, WAITS


@dataclass(frozen=True)
class CollectiveReport:
    """Collective of a program, which other instructions run beside.

    nbytes    of the tensor that is sent
    location  the user's line
    beside    instructions that run between its start and the wait for it, of `count`
    seconds   that these take, as the last `profile` measured them; None without
    """

    name: str
    nbytes: int
    location: Any
    beside: int
    count: int
    seconds: float | None

    def __str__(self) -> str:
        taken = "" if self.seconds is None else f", {self.seconds * 1e3:.2f} ms of work"
        where = "" if self.location is None else f"  {self.location}"
        return (f"{self.name:<24} {self.nbytes / 1024:>10.1f} KiB  beside {self.beside} of "
                f"{self.count} instructions{taken}{where}")


def collectives_of(segment: Any, sizes: dict[str, int]) -> list[CollectiveReport]:
    """Return the collectives of a segment's program, in the order in which they start."""
    program = segment.program
    if program is None:
        return []
    instructions = program.instructions
    times = list(segment.times)
    found = []
    for k, begun in enumerate(instructions):
        if begun.extern not in COLLECTIVES:
            continue
        last = next(
            n for n, x in enumerate(instructions)
            if n > k and x.extern == WAITS and x.operands == begun.operands
        )
        between = [
            n for n in range(k + 1, last)
            if instructions[n].extern not in COLLECTIVES and instructions[n].extern != WAITS
        ]
        nbytes = 0
        if begun.extern != "barrier":
            sent = program.buffers[begun.operands[0]]
            nbytes = evaluate(sent.numel, sizes) * sent.dtype.itemsize
        seconds = sum(times[n] for n in between) if len(times) == len(instructions) else None
        found.append(CollectiveReport(
            begun.extern, nbytes, begun.locations[0] if begun.locations else None, len(between),
            len(instructions), seconds,
        ))  # fmt: skip
    return found
