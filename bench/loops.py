"""Loops of small operations beside jax of two ages and PyTorch eager, each in its own process.

    python -m bench.loops                               all programs, with today's jax and torch
    python -m bench.loops --old .venv-loops/bin/python  and jax 0.4.31, which `make bench-loops` has
    python -m bench.loops --only kalman,heat --rounds 5 --json out.json
    python -m bench.loops --growth                      and how first calls grow with the sizes

In: the programs of `loop_simulations`, `loop_filters` and `loop_scalars`. Out: milliseconds of a
warm call and seconds of the first, gradients included; shares of floors. The exit status is 1 when
results differ or a contender fails.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import select
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import floors, report
from bench.loop_program import Program, Sizes, difference
from bench.loop_worker import PROGRAMS, load
from bench.report import Cell, Report
from bench.selection import chosen

OLD = "jax 0.4.31"
CONTENDERS = ("tracejit", "jax.jit", OLD, "torch eager", "tracejit eager")
GROWTH = 4  # first calls are compared with those of a size this many times smaller
ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Worker:
    """A process of one contender of one program, which answers one command at a time."""

    contender: str
    program: Program
    sizes: Sizes
    python: str
    folder: Path
    limit: float
    cell: Cell = field(default_factory=dict)
    medians: list[float] = field(default_factory=list)
    process: subprocess.Popen[str] | None = None

    @property
    def result(self) -> Path:
        return self.folder / f"{CONTENDERS.index(self.contender)}.npz"

    def start(self) -> None:
        """Import, compile something trivial; then the first call of the program."""
        cache = self.folder / f"cache{CONTENDERS.index(self.contender)}"
        environ = {**os.environ, "TRACEJIT_CACHE_DIR": str(cache)}
        environ.pop("OPENBLAS_CORETYPE", None)
        command = [self.python, "-m", "bench.loop_worker", self.contender, self.program.name,
                   json.dumps(self.sizes), str(self.result)]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environ, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=(self.folder / "errors").open("w+"))
        if self._answer() is not None:
            self._ask("first")

    def turn(self) -> None:
        """Time calls once more, unless the contender is out; of slow calls one turn will do."""
        slow = self.cell.get("once", 0.0) > 1.0 and self.medians
        if "error" not in self.cell and not slow and self._ask("turn"):
            self.medians.append(self.cell["median"])
            self.cell["s"] = min(self.medians)

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close(), self.process.stdout.close()  # type: ignore[union-attr]
            self.process = None

    def _ask(self, command: str) -> Cell | None:
        assert self.process is not None and self.process.stdin is not None
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        return self._answer()

    def _answer(self) -> Cell | None:
        """Wait for a line; a contender that takes too long, or fails, is out."""
        assert self.process is not None and self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], self.limit)
        line = self.process.stdout.readline() if ready else ""
        if line:
            self.cell.update(json.loads(line))
            return self.cell
        self.cell["error"] = f"over {self.limit:.0f} s" if not ready else self._failure()
        self.stop()
        return None

    def _failure(self) -> str:
        lines = (self.folder / "errors").read_text().strip().splitlines() or ["ended"]
        return "failed: " + lines[-1]


def contenders(options: argparse.Namespace) -> dict[str, str]:
    """Return the Python of every contender that is asked for and there."""
    found = {}
    for name in options.contenders.split(","):
        if name not in CONTENDERS:
            raise SystemExit(f"no contender {name!r}; there are {', '.join(CONTENDERS)}")
        module = {"jax.jit": "jax", "torch eager": "torch"}.get(name, "tracejit")
        if name == OLD:
            if options.old:
                found[name] = options.old
        elif importlib.util.find_spec(module) is not None:
            found[name] = sys.executable
    return found


def measure(program: Program, who: dict[str, str], options: argparse.Namespace) -> dict[str, Cell]:
    """Start every contender, then time them in turns."""
    sizes = program.tiny if options.tiny else program.full
    with tempfile.TemporaryDirectory() as folder:
        workers = [Worker(name, program, sizes, python, Path(folder), options.limit)
                   for name, python in who.items() if program.torch or name != "torch eager"]
        try:
            for worker in workers:
                worker.start()
            for _ in range(options.rounds):
                for worker in workers:
                    worker.turn()
            _compare(program, workers)
        finally:
            for worker in workers:
                worker.stop()
    return {worker.contender: worker.cell for worker in workers}


def _compare(program: Program, workers: list[Worker]) -> None:
    """Note how far each result is from that of jax, or of whoever is there first."""
    there = sorted((worker for worker in workers if worker.result.exists()),
                   key=lambda worker: not worker.contender.startswith("jax"))
    for worker in there:
        worker.cell["difference"] = difference(
            load(worker.result), load(there[0].result), program)


def growth(program: Program, who: dict[str, str], options: argparse.Namespace) -> dict[str, str]:
    """Return how many times longer first calls take at four times the length, and the body."""
    found = {}
    sizes = program.tiny if options.tiny else program.full
    for kind, key in (("length", program.length), ("body", program.body)):
        for name, python in who.items():
            if not key or "eager" in name:
                continue
            firsts = []
            for size in (max(2, sizes[key] // GROWTH), sizes[key]):
                with tempfile.TemporaryDirectory() as folder:
                    worker = Worker(name, program, {**sizes, key: size}, python, Path(folder),
                                    options.limit)
                    worker.start()
                    worker.stop()
                    firsts.append(worker.cell.get("first", math.inf))
            found[f"{name}: first call, {GROWTH}x {kind}"] = (
                f"{firsts[1] / firsts[0]:.2f}x" if math.isfinite(firsts[1]) else
                f"over {options.limit:.0f} s")
    return found


def extras(program: Program, row: dict[str, Cell], floor: dict[str, Any], tiny: bool
           ) -> dict[str, str]:
    """Return how much faster tracejit is than the better jax, and its share of its floor."""
    ours = row.get("tracejit", {}).get("s", math.nan)
    best = min((row[name]["s"] for name in ("jax.jit", OLD) if "s" in row.get(name, {})),
               default=math.nan)
    found = {"best jax / tracejit": f"{best / ours:.2f}x" if math.isfinite(best / ours) else "-"}
    if program.floor is not None and floor and not tiny and math.isfinite(ours):
        found["floor / tracejit"] = f"{program.floor(floor, program.full) / ours:.0%}"
    return found


def notes(found: Report) -> list[str]:
    """Return the geometric means, and what differs or failed."""
    lines = []
    for other in (name for name in found.columns if name != "tracejit"):
        ratios = [found.seconds(row, other) / found.seconds(row, "tracejit") for row in found.rows]
        if any(map(math.isfinite, ratios)):
            count = sum(map(math.isfinite, ratios))
            behind = [row for row, ratio in zip(found.rows, ratios) if ratio < 1]
            lines.append(f"{other} takes {report.mean(ratios):.2f} times tracejit's time "
                         f"(geometric mean of {count})")
            lines.append(f"behind {other}: {'; '.join(behind) or 'none'}")
    return lines + wrong(found)


def wrong(found: Report) -> list[str]:
    """Return what makes the exit status 1: results that differ, contenders that failed."""
    lines = []
    for name, row in found.rows.items():
        for column, cell in row.items():
            if cell.get("difference", 0.0) > PROGRAMS[name].tolerance:
                lines.append(f"{name}, {column}: the result differs by {cell['difference']:.1e}")
            if str(cell.get("error", "")).startswith("failed"):
                lines.append(f"{name}, {column}: {cell['error']}")
    return lines


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.loops",
                                     description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="parts of program names, comma separated")
    parser.add_argument("--contenders", default=",".join(CONTENDERS[:4]))
    parser.add_argument("--old", help="the Python of an environment with jax 0.4.31")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each contender")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a call may take")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes: are the results equal?")
    parser.add_argument("--growth", action="store_true", help="also how first calls grow")
    parser.add_argument("--no-floors", action="store_true", help="measure no floors")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--commit", action="store_true", help="write bench/results/loops.*")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Measure and print; the exit status is 1 when results differ or a contender failed."""
    parser = _parser()
    options = parser.parse_args(argv)
    names = chosen((p.name for p in PROGRAMS.values()), options.only, parser)
    programs = [p for p in PROGRAMS.values() if p.name in names]
    who = contenders(options)
    floor = {} if options.no_floors or options.tiny else floors.measure()
    found = Report("loops", "Loops of small operations", list(who))
    found.conditions["machine"] = floors.text(floor) if floor else floors.processor()
    for program in programs:
        print(f"measuring {program.name} ...", file=sys.stderr, flush=True)
        found.rows[program.name] = row = measure(program, who, options)
        found.extra[program.name] = extras(program, row, floor, options.tiny)
        if options.growth:
            found.extra[program.name] |= growth(program, who, options)
        found.conditions |= {name: _versions(found, name) for name in who}
        found.conditions["load at the end"] = round(os.getloadavg()[0], 2)
        report.keep(found, options.json)
    found.notes = notes(found)
    report.finish(found, options.json, options.commit)
    return 1 if wrong(found) else 0


def _versions(found: Report, contender: str) -> dict[str, str]:
    for row in found.rows.values():
        if "versions" in row.get(contender, {}):
            return dict(row[contender]["versions"])
    return {}


if __name__ == "__main__":
    sys.exit(main())
