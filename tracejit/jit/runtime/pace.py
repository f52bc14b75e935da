"""Decides how calls that no program serves run: captured again, co-executed, or plainly.

In: how long such calls took. Out: how the next one runs. Called by `jit.CompiledFunction`.

After a few captures without a program the function is timed both ways, turn by turn, in its own
calls. The faster way is taken. Now and then a capture is tried again; after one more failure both
ways are timed anew.
"""

from __future__ import annotations

import statistics
import time

CAPTURE, COEXECUTE, PLAINLY = "capture", "co-execute", "plainly"

PATIENCE = 3  # captures without a program, before other ways are tried
PERIOD, LONGEST = 64, 1024  # calls until the next capture; each time it fails, twice as many
TURNS = 4  # calls timed in each way; the first one compiles and does not count
CLEARLY = 1.2  # a way that was chosen before changes only for one this much faster

clock = time.perf_counter  # tests replace it


class Pace:
    """Choice of how one function runs in one mode, while no program serves its calls."""

    def __init__(self, measured: bool):
        self.measured = measured  # calls may run plainly, so both ways are timed
        self.calls = 0
        self.period, self.next = PERIOD, PERIOD
        self.taken: dict[str, list[float]] = {COEXECUTE: [], PLAINLY: []}
        self.way = COEXECUTE
        self.decided = False  # both ways were timed before
        self.seconds: dict[str, float] = {}  # way -> seconds of a call, when last timed

    def turn(self) -> str:
        """Decide how the next call runs."""
        if self.calls < PATIENCE or self.calls >= self.next:
            return CAPTURE
        if not self.measured:
            return COEXECUTE
        coexecuted, plain = len(self.taken[COEXECUTE]), len(self.taken[PLAINLY])
        if min(coexecuted, plain) >= TURNS:
            return self.way
        return COEXECUTE if coexecuted <= plain else PLAINLY

    def took(self, turn: str, seconds: float) -> None:
        """Note that a call ran by this turn, made no program, and took so many seconds."""
        self.calls += 1
        if turn == CAPTURE:
            if self.calls > self.next:
                self.period = min(2 * self.period, LONGEST)
                self.next = self.calls + self.period
                self.taken = {COEXECUTE: [], PLAINLY: []}
        elif len(self.taken[turn]) < TURNS:
            self.taken[turn].append(seconds)
            if min(map(len, self.taken.values())) >= TURNS:
                self._decide()

    def _decide(self) -> None:
        self.seconds = {way: statistics.median(taken[1:]) for way, taken in self.taken.items()}
        other = PLAINLY if self.way == COEXECUTE else COEXECUTE
        needed = CLEARLY if self.decided else 1.0
        if self.seconds[other] * needed < self.seconds[self.way]:
            self.way = other
        self.decided = True

    @property
    def text(self) -> str:
        """Reason why calls run plainly, in words; "" where they do not."""
        if not self.decided or self.way != PLAINLY:
            return ""
        plain, recorded = (self.seconds[way] * 1e3 for way in (PLAINLY, COEXECUTE))
        return (f"it has no program for its calls; a plain call takes {plain:.3g} ms, a "
                f"co-executed one {recorded:.3g} ms; tracejit captures again every {self.period} "
                "calls")
