"""Faults planted one at a time: does the suite see them? `python -m tests.mutants [--only
WORD] [--jobs N]`.

In: the rows of `tests/mutant_rows*.py`. Each is applied to a temporary copy of the package and its
tests, where a selected fast part of the suite then runs, with an empty kernel cache. A fault is
caught by a test that fails with it and passes without it; tests that fail without it are left out,
and named. Out: a line for each row, a table of the groups; exit status 1 when fewer than 95 % are
caught or when a row no longer matches the code.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests import mutant_rows, mutant_rows_regions, mutant_rows_replays, mutant_rows_state
from tests.mutant_rows import Mutant

ROOT = Path(__file__).parents[1]
SECONDS = 120  # of the processor: a fault may make a loop endless, which counts as caught
WAITING = 10  # times as long by the clock, where the machine does other work too
LIMITED = f"""\
import resource, sys, pytest
resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS}))
sys.exit(pytest.main(sys.argv[1:]))"""
ENOUGH = 0.95
GROUPS = {
    "pipeline": mutant_rows.ROWS,
    "regions": mutant_rows_regions.ROWS,
    "state": mutant_rows_state.ROWS,
    "replays": mutant_rows_replays.ROWS,
}
ROWS = [(group, mutant) for group, rows in GROUPS.items() for mutant in rows]
PASSED, FAILED = 0, 1  # pytest's exit statuses; others: it did not run
OUTCOMES = ("caught", "SURVIVED", "OLD TEXT", "NO TESTS")


@dataclass
class Verdict:
    group: str
    mutant: Mutant
    outcome: str  # one of OUTCOMES
    by: str
    seconds: float


class Copy:
    """A temporary copy of the package and its tests, to plant faults in and run tests in."""

    def __init__(self, directory: Path):
        self.root = directory
        for part in ("tracejit", "tests", "docs", "examples"):
            if (ROOT / part).is_dir():
                shutil.copytree(
                    ROOT / part, directory / part, ignore=shutil.ignore_patterns("__pycache__")
                )
        shutil.copy(ROOT / "pyproject.toml", directory)

    @contextlib.contextmanager
    def planted(self, mutant: Mutant) -> Iterator[None]:
        path = self.root / mutant.file
        text = path.read_text()
        path.write_text(text.replace(mutant.old, mutant.new))
        try:
            yield
        finally:
            path.write_text(text)

    def test(self, selection: Sequence[str], leave_out: Sequence[str] = ()) -> tuple[int, str]:
        """Run tests here until one fails: exit status, and the test that failed."""
        command = [sys.executable, "-c", LIMITED, "-q", "-x", "-p", "no:cacheprovider"]
        command += ["--no-header", "-rfE", "--tb=no", "-m", "not slow and not gpu"]
        command += [*(f"--deselect={t}" for t in leave_out), *selection]
        with tempfile.TemporaryDirectory(dir=self.root) as cache:
            environment = {
                **os.environ,
                "PYTHONPATH": str(self.root),
                "TRACEJIT_CACHE_DIR": cache,
                "PYTHONDONTWRITEBYTECODE": "1",
            }
            try:
                done = subprocess.run(
                    command,
                    cwd=self.root,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=SECONDS * WAITING,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return FAILED, ""
        if done.returncode < 0:  # stopped for its time, or crashed
            return FAILED, ""
        failed = [
            line.split(" ", 1)[1].split(" - ")[0]
            for line in done.stdout.splitlines()
            if line.startswith(("FAILED ", "ERROR "))
        ]
        return done.returncode, failed[0] if failed else ""


class Sound:
    """Which tests pass, and which fail, without any fault; asked of those that saw one."""

    def __init__(self) -> None:
        self.passing: set[tuple[str, ...]] = set()
        self.failing: set[str] = set()

    def passes(self, copy: Copy, selection: tuple[str, ...]) -> bool:
        if selection not in self.passing and copy.test(selection)[0] == PASSED:
            self.passing.add(selection)
        return selection in self.passing


def judge(copy: Copy, mutant: Mutant, sound: Sound) -> tuple[str, str]:
    """Run the tests of a row with its fault in place: the outcome, and the test that saw it."""
    if (copy.root / mutant.file).read_text().count(mutant.old) != 1:
        return "OLD TEXT", "occurs not exactly once"
    while True:
        with copy.planted(mutant):
            status, failed = copy.test(mutant.tests, sorted(sound.failing))
        if status == PASSED:
            return "SURVIVED", ""
        if sound.passes(copy, (failed,) if failed else mutant.tests):
            return "caught", failed or "(did not end, or could not begin)"
        if not failed or failed in sound.failing:
            return "NO TESTS", f"pytest {' '.join(mutant.tests)}"
        sound.failing.add(failed)


def run(rows: Sequence[tuple[str, Mutant]], jobs: int) -> tuple[list[Verdict], Sound]:
    """Judge all rows, in `jobs` copies."""
    sound, free = Sound(), queue.SimpleQueue[Copy]()

    def verdict(row: tuple[str, Mutant]) -> Verdict:
        copy, started = free.get(), time.monotonic()
        outcome, by = judge(copy, row[1], sound)
        free.put(copy)
        found = Verdict(*row, outcome, by, time.monotonic() - started)
        show(found)
        return found

    with tempfile.TemporaryDirectory(prefix="mutants") as directory:
        for k in range(jobs):
            free.put(Copy(Path(directory) / str(k)))
        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(verdict, rows)), sound


def show(v: Verdict) -> None:
    what = f"{v.mutant.area}: {v.mutant.what}"
    print(f"{v.outcome:8} {v.seconds:5.1f} s  {what:70.70}  {v.by[:100]}", flush=True)


def table(verdicts: Sequence[Verdict]) -> str:
    """Outcomes counted, by group."""
    lines = ["| group | rows | caught | survived | old text | no tests | seconds |"]
    lines.append("| --- |" + " --- |" * 6)
    for group in [*GROUPS, "all"]:
        own = [v for v in verdicts if group in (v.group, "all")]
        counts = [sum(v.outcome == outcome for v in own) for outcome in OUTCOMES]
        cells = [group, len(own), *counts, round(sum(v.seconds for v in own))]
        lines += ["| " + " | ".join(map(str, cells)) + " |"] if own else []
    return "\n".join(lines)


def wanted(only: str) -> list[tuple[str, Mutant]]:
    """The rows of a group, of a number, of numbers from-to, or those that a word describes."""
    if only in GROUPS:
        return [(only, mutant) for mutant in GROUPS[only]]
    if numbers := re.fullmatch(r"(\d+)(?:-(\d+))?", only):
        first, last = numbers[1], numbers[2] or numbers[1]
        return ROWS[int(first) : int(last) + 1]
    return [(g, m) for g, m in ROWS if only in f"{m.area}: {m.what}"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    what = f"a group ({', '.join(GROUPS)}), row numbers (17, 40-52), or a word"
    parser.add_argument("--only", default="", help=what)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    started = time.monotonic()
    verdicts, sound = run(wanted(options.only), options.jobs)
    if sound.failing:
        print("fail without any fault and were left out:", *sorted(sound.failing), sep="\n  ")
    print(table(verdicts))
    counts = [sum(v.outcome == outcome for v in verdicts) for outcome in OUTCOMES]
    print(f"{counts[0]} of {len(verdicts)} caught in {time.monotonic() - started:.0f} s")
    return 1 if any(counts[2:]) or counts[0] < ENOUGH * len(verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
