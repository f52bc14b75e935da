"""Faults planted one at a time: does the suite see them? `python -m tests.mutants [--only
WORD] [--jobs N]`.

In: the rows of `tests/mutant_rows*.py`. Each is applied to a temporary copy of the package and its
tests, where a selected fast part of the suite then runs, with an empty kernel cache. Out: a table;
exit status 1 when fewer than 95 % are caught or when a row no longer matches the code. Tests that
fail without any fault are left out, and named.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests import mutant_rows, mutant_rows_regions, mutant_rows_state
from tests.mutant_rows import Mutant

ROOT = Path(__file__).parents[1]
SECONDS = 300  # a fault may make a loop endless: that counts as caught
ENOUGH = 0.95
ROWS = [*mutant_rows.ROWS, *mutant_rows_regions.ROWS, *mutant_rows_state.ROWS]


@dataclass
class Verdict:
    mutant: Mutant
    outcome: str  # caught, SURVIVED, OLD TEXT, NO TESTS
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

    def plant(self, mutant: Mutant) -> bool:
        """Replace the text; False where it does not occur exactly once."""
        path = self.root / mutant.file
        text = (ROOT / mutant.file).read_text()
        if text.count(mutant.old) != 1:
            return False
        path.write_text(text.replace(mutant.old, mutant.new))
        return True

    def restore(self, mutant: Mutant) -> None:
        shutil.copy(ROOT / mutant.file, self.root / mutant.file)

    def test(
        self, selection: Sequence[str], leave_out: Sequence[str] = (), stop: bool = True
    ) -> tuple[int, list[str]]:
        """Run tests here: exit status, and the tests that failed."""
        with tempfile.TemporaryDirectory(dir=self.root) as cache:
            environment = {
                **os.environ,
                "PYTHONPATH": str(self.root),
                "TRACEJIT_CACHE_DIR": cache,
                "PYTHONDONTWRITEBYTECODE": "1",
            }
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                "--no-header",
                "-rfE",
                "--tb=no",
                *(["-x"] if stop else []),
                *(f"--deselect={t}" for t in leave_out),
                *selection,
            ]
            try:
                done = subprocess.run(
                    command,
                    cwd=self.root,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=SECONDS,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return 1, ["(did not end)"]
        failed = [
            line.split(" ", 1)[1].split(" - ")[0]
            for line in done.stdout.splitlines()
            if line.startswith(("FAILED ", "ERROR "))
        ]
        if done.returncode not in (0, 1) and not failed:
            failed = [(done.stdout + done.stderr).strip().splitlines()[-1][:80]]
        return done.returncode, failed


class Baseline:
    """Which tests fail without any fault."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, ...], list[str]] = {}

    def failing(self, copy: Copy, selection: tuple[str, ...]) -> list[str]:
        if selection not in self.known:
            status, failed = copy.test(selection, stop=False)
            if status not in (0, 1):
                failed = [f"pytest {' '.join(selection)} does not run: {failed}"]
            self.known[selection] = failed
        return self.known[selection]


def judge(copy: Copy, mutant: Mutant, baseline: Baseline) -> Verdict:
    """Run the tests of a row with its fault in place."""
    leave_out = baseline.failing(copy, mutant.tests)
    if any("does not run" in failed for failed in leave_out):
        return Verdict(mutant, "NO TESTS", leave_out[0], 0)
    if not copy.plant(mutant):
        return Verdict(mutant, "OLD TEXT", "occurs not exactly once", 0)
    started = time.monotonic()
    try:
        status, failed = copy.test(mutant.tests, leave_out)
    finally:
        copy.restore(mutant)
    outcome = "SURVIVED" if status == 0 else "caught"
    return Verdict(mutant, outcome, failed[0] if failed else "", time.monotonic() - started)


def run(rows: Sequence[Mutant], jobs: int) -> tuple[list[Verdict], Baseline]:
    """Judge all rows, in `jobs` copies."""
    baseline, verdicts = Baseline(), []
    with tempfile.TemporaryDirectory(prefix="mutants") as directory:
        copies = [Copy(Path(directory) / str(k)) for k in range(jobs)]

        def share(k: int) -> None:
            for mutant in rows[k::jobs]:
                verdicts.append(judge(copies[k], mutant, baseline))
                show(verdicts[-1])

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(share, range(jobs)))
    return verdicts, baseline


def show(v: Verdict) -> None:
    print(
        f"{v.outcome:9} {v.seconds:5.1f} s  {v.mutant.area:9} {v.mutant.what:58.58}  {v.by[:100]}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "--only", default="", help="rows whose number, area or description this is part of"
    )
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    wanted = [
        m
        for k, m in enumerate(ROWS)
        if options.only in (str(k), "") or options.only in f"{m.area} {m.what}"
    ]
    started = time.monotonic()
    verdicts, baseline = run(wanted, options.jobs)
    failing = sorted({t for tests in baseline.known.values() for t in tests})
    if failing:
        print(
            f"{len(failing)} tests fail without any fault and were left out:", *failing, sep="\n  "
        )
    caught = sum(v.outcome == "caught" for v in verdicts)
    print(f"{caught} of {len(verdicts)} caught in {time.monotonic() - started:.0f} s")
    unsound = any(v.outcome in ("OLD TEXT", "NO TESTS") for v in verdicts)
    return 1 if unsound or caught < ENOUGH * len(verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
