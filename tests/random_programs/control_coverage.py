"""What random programs with control flow and state covered: constructs, what the caller changed,
and how much of it was captured.

In: programs, and captured functions after their calls. Out: counts that processes can add up, and
the second table of `docs/coverage_random.md`. Called by `coverage.py` and `processes.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.random_programs.conditions import DECIDED
from tests.random_programs.program import Mark, Program, walk

PLACES = ("top", "branch", "for", "while", "function")
REGIONS = ("cond", "for_loop", "while_loop", "raise_if")


@dataclass
class Control:
    """Counts; `marks` are (construct, where it stands, what decides it)."""

    marks: Counter[Mark] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, program: Program) -> None:
        around = (*program.preamble, *program.steps)
        marks = [*program.marks, *(mark for step in walk(around) for mark in step.marks)]
        self.marks.update(marks)
        self.counts["programs"] += 1
        loops = ("for", "while")
        for word in ("break", "continue", "return"):
            self.counts[f"programs with {word} in a loop"] += any(
                what == word and _in_loop(program, where) for what, where, _ in marks
            )
        self.counts["programs with a loop"] += any(what in loops for what, _, _ in marks)
        self.counts["programs with a branch"] += any(what in ("if", "elif") for what, _, _ in marks)
        self.counts["programs decided by a tensor"] += any(by == "tensor" for _, _, by in marks)
        for call in program.calls:
            self.counts["state changed between calls: no_grad"] += call.no_grad
            self.counts["state changed between calls: memory left behind"] += call.again
            for change in call.changes:
                self.counts[f"state changed between calls: {_target(change)}"] += 1

    def add_capture(self, way: str, function: Any) -> None:
        """What became of a program: replayed without a break, with which regions, or not."""
        counts, breaks = self.counts, function.report().breaks
        segments = function.statistics.segments.values()
        ops = {node.op.name for segment in segments for node in segment.captured.nodes}
        found = [name for name in REGIONS if name in ops]
        counts[f"{way}: runs"] += 1
        counts[f"{way}: without a break"] += not breaks
        counts[f"{way}: without a break, with a region"] += not breaks and bool(found)
        counts[f"{way}: with a break, with a region"] += bool(breaks) and bool(found)
        for name in found:
            counts[f"{way}: with {name}"] += 1

    def report(self) -> str:
        """Markdown: the counts, and a row per construct."""
        columns = ["construct", *PLACES, *(f"by {by}" for by in DECIDED), "all"]
        lines = [columns, ["---"] * len(columns)]
        for what in sorted({mark[0] for mark in self.marks}):
            lines.append([what, *(self._count(what, 1, place) for place in PLACES),
                          *(self._count(what, 2, by) for by in DECIDED),
                          self._count(what, 0, what)])  # fmt: skip
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        counts = "\n".join(f"- {name}: {n}" for name, n in sorted(self.counts.items()))
        return f"""## Control flow and state

How often each construct stood at the top of the program or directly in a block of some kind, and
what decided it.

{table}

{counts}
"""

    def _count(self, what: str, position: int, value: str) -> str:
        found = (n for m, n in self.marks.items() if m[0] == what and m[position] == value)
        return str(sum(found) or "")


def _in_loop(program: Program, where: str) -> bool:
    return where in ("for", "while") or where == "branch" and bool(
        re.search(r"^ +(for|while) ", program.text(), re.M)
    )


def _target(change: str) -> str:
    name = re.split(r"[ (=\[]", change.replace("scope['G0']", "global"))[0]
    return re.sub(r"^x\d+", "an argument", name)
