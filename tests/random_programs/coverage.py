"""What random programs covered: op x dtype x shape class x alias class, and how programs were run.

In: programs that were checked. Out: counts that processes can add up, and the table in
`docs/coverage_random.md`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.random_programs.control_coverage import Control
from tests.random_programs.generator import OPS
from tests.random_programs.program import Program, Step, walk
from tests.random_programs.spaces import KIND

DTYPES = tuple(d for kind in "fib" for d in KIND[kind])
SHAPES = ("0", "1", "0-dim", "many", "broadcast")
ALIASES = ("fresh", "input", "view", "strided", "expanded", "shared")
SHORT = {
    "float32": "f32",
    "float64": "f64",
    "float16": "f16",
    "bfloat16": "bf16",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
    "bool": "bool",
}


@dataclass
class Coverage:
    """Counts of what was run; `cells` are (op, dtype, shape class, alias class)."""

    cells: Counter = field(default_factory=Counter)
    runs: Counter = field(default_factory=Counter)
    programs: Counter = field(default_factory=Counter)
    rejected: Counter = field(default_factory=Counter)
    control: Control = field(default_factory=Control)

    def add(self, program: Program) -> None:
        steps = [s for s in walk(program.steps) if isinstance(s, Step)]
        for step in steps:
            self.cells.update(step.cells)
        if program.is_flow:
            self.control.add(program)
        self.programs["all"] += 1
        self.programs["calls"] += len(program.calls)
        self.programs["steps"] += len(steps)
        self.programs[f"backward {program.backward or 'none'}"] += 1
        self.programs["with memory shared by arguments"] += any(
            "shared" in c[3] for s in steps for c in s.cells
        )
        self.programs["ending in an exception"] += program.raises
        self.programs["with writes"] += any("write" in c[3] for s in steps for c in s.cells)
        self.rejected.update((op, why.split(":")[0]) for op, why in program.rejected)

    def merge(self, other: Coverage) -> None:
        for mine, theirs in (
            (self.cells, other.cells),
            (self.runs, other.runs),
            (self.programs, other.programs),
            (self.rejected, other.rejected),
            (self.control.counts, other.control.counts),
            (self.control.marks, other.control.marks),
        ):
            mine.update(theirs)

    # -- the table -------------------------------------------------------------------------------
    def missing(self) -> list[str]:
        """Ops that no program had."""
        seen = {cell[0] for cell in self.cells}
        return [op for op in OPS if op not in seen]

    def _row(self, op: str) -> list[str]:
        cells = [(c, n) for c, n in self.cells.items() if c[0] == op]

        def count(position: int, value: str) -> str:
            return str(sum(n for c, n in cells if c[position] == value) or "")

        return [
            op,
            *(count(1, d) for d in DTYPES),
            *(count(2, s) for s in SHAPES),
            *(count(3, a) for a in ALIASES),
            *(count(3, f"write {a}") for a in ALIASES),
            str(len(cells)),
        ]

    def table(self) -> str:
        """Markdown: a row per op, a column per dtype, shape class and alias class; the last column
        counts combinations.
        """
        columns = [
            "op",
            *(SHORT[d] for d in DTYPES),
            *SHAPES,
            *ALIASES,
            *(f"w {a}" for a in ALIASES),
            "cells",
        ]
        names = sorted(set(OPS) | {c[0] for c in self.cells})
        lines = [columns, ["---"] * len(columns), *map(self._row, names)]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def report(self, seconds: float, failures: int, seeds: str) -> str:
        programs = self.programs
        runs = "\n".join(
            f"| {way} | {n} | {100 * n / max(programs['all'], 1):.0f} % |"
            for way, n in sorted(self.runs.items())
            if way.count("elements") == 0
        )
        compared, skipped = self.runs["elements compared"], self.runs["elements undecided"]
        marks = "\n".join(f"- {name}: {n}" for name, n in sorted(programs.items()))
        return f"""# What random programs cover

Written by `python -m tests.random_programs`; how to read and repeat it: `docs/testing.md`.

Seeds {seeds}: {programs["all"]} programs, {failures} mismatches, {seconds:.0f} s.

{marks}
- distinct cells (op x dtype x shape class x alias class): {len(self.cells)}
- ops never made: {", ".join(self.missing()) or "none"}
- elements compared within a tolerance: {compared}; left out, since rounding decides them: {skipped}

Each program runs plainly and in these ways:

| way | programs | share |
| --- | --- | --- |
{runs}

Counts per op: by dtype, shape class and alias class of its first operand (the written one: `w`).
A step at several sizes counts once for each shape class it met.

{self.table()}

{self.control.report()}
"""
