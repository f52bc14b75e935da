"""`python -m tests.random_programs --count 20000 --seed 0 --jobs 2`: random programs, in processes
that may crash.

In: how many, from which seed, in which modes. Out: mismatches, made small, as scripts; with
`--table` the coverage table in `docs/coverage_random.md`; exit status 1 where anything differed.
With `--parts FILE` this is one part of a run, whose earlier parts are in the file: of the same
sources, without any of these seeds.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

from tests.random_programs.parts import in_words, parts_in
from tests.random_programs.processes import Shares, run_all

COVERAGE = Path(__file__).parents[2] / "docs" / "coverage_random.md"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only",
        choices=["straight", "flow"],
        help="even seeds alone, straight-line programs; or odd ones, with control flow",
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e6, help="stop after so long")
    parser.add_argument(
        "--modes",
        default="",
        help="only these, for all: graph,graph:eager,graph:eager:trace,compiled,python, ...",
    )
    parser.add_argument(
        "--compiled", type=int, default=4, help="one program in so many runs compiled"
    )
    parser.add_argument("--parts", type=Path, help="add to the parts of a run in this file")
    parser.add_argument("--table", action="store_true", help=f"write {COVERAGE.name}")
    options = parser.parse_args()
    seeds = _seeds(options.seed, options.count, options.only)
    earlier = parts_in(options.parts, seeds) if options.parts else None
    shares = Shares(options.compiled, only=tuple(filter(None, options.modes.split(","))))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # workers end too
    started = time.monotonic()
    total = run_all(seeds, options.jobs, shares, options.minutes)
    seconds = time.monotonic() - started
    complete = total.coverage.programs["all"] == options.count
    report = total.coverage.report(seconds, len(total.failures), in_words(seeds))
    if earlier is not None and complete:
        earlier.add(total.coverage, seeds, len(total.failures), seconds)
        earlier.save(options.parts)
        report = earlier.report()
    if options.table:
        COVERAGE.write_text(report)
    print(report.partition("Counts per op")[0])
    print(total.coverage.control.report())
    for (op, kind), n in total.coverage.rejected.most_common(8):
        print(f"refused by eager mode: {n} x {op} ({kind})")
    print(
        f"{total.coverage.programs['all']} programs, {len(total.failures)} failures, "
        f"{seconds:.0f} s"
    )
    return 1 if total.failures or not complete else 0


def _seeds(first: int, count: int, only: str | None) -> range:
    if only is None:
        return range(first, first + count)
    first += (first % 2 == 0) == (only == "flow")
    return range(first, first + 2 * count, 2)


if __name__ == "__main__":
    sys.exit(main())
