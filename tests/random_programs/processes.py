"""Random programs checked in processes, which may crash or hang: another one then goes on behind
the program at fault.

In: seeds and the share of each way to run. Out: what was covered and every mismatch, made small.
Called by `__main__.py`.
"""

from __future__ import annotations

import gc
import multiprocessing
import resource
import signal
import time
import traceback
from dataclasses import dataclass, field
from queue import Empty
from typing import Any

import numpy as np

from tests.random_programs.coverage import Coverage
from tests.random_programs.generator import program_of
from tests.random_programs.minimise import minimise
from tests.random_programs.observe import Outgrown, observe
from tests.random_programs.program import Program
from tests.random_programs.runner import Mismatch, Way, check, tolerance_of

HANGS_AFTER = 150  # seconds of the processor for one program, made small if it fails
WAITING = 10  # times as long by the clock, where the machine does other work too
BATCH = 20
MOST_MEMORY = 8 << 30  # bytes of a process


@dataclass
class Shares:
    """Every program is interpreted with numerics="eager"; one in so many runs in each other way.
    Those with control flow have more to compile and are compiled in one of `flow` such cases.
    """

    compiled: int = 4
    graph: int = 4
    exact: int = 16
    python: int = 32
    trace: int = 16
    flow: int = 4
    only: tuple[str, ...] = ()

    def ways(self, seed: int) -> list[Way]:
        if self.only:
            return [Way(*mode.split(":")) for mode in self.only]
        ways, turn = [Way("graph", "eager")], seed // 2  # even and odd seeds alike
        if turn % self.graph == 1:
            ways.append(Way("graph"))
        rare = self.flow if seed % 2 else 1
        if turn % (self.compiled * rare) == 0:
            ways.append(Way("compiled"))
        if turn % (self.exact * rare) == 3:
            ways.append(Way("compiled", "eager"))
        if turn % (self.python * rare) == 2:
            ways.append(Way("python"))
        if turn % self.trace == 5:
            ways.append(Way("graph", "eager", "trace"))
        return ways


@dataclass
class Found:
    """What a process sends back."""

    coverage: Coverage = field(default_factory=Coverage)
    failures: list[tuple[int, str, str]] = field(default_factory=list)  # seed, what, script


def run_seed(seed: int, shares: Shares, found: Found) -> None:
    """Generate the program of a seed and check it in all its ways."""
    program = program_of(seed)
    found.coverage.add(program)
    try:
        with np.errstate(all="ignore"):
            expected = observe(program)
    except Outgrown:
        found.coverage.programs["not judged: the state outgrows memory"] += 1
        return
    ways = shares.ways(seed)
    tolerance = None if all(w.exact for w in ways) else tolerance_of(program, expected)
    for way in ways:
        found.coverage.runs[str(way)] += 1
        captured: list[Any] = []
        mismatch = check(program, way, expected, tolerance, captured)
        if program.is_flow and captured:
            found.coverage.control.add_capture(str(way), captured[0])
        if mismatch is not None:
            found.failures.append(reported(seed, mismatch))
    if tolerance is not None:
        found.coverage.runs["elements compared"] += tolerance.compared
        found.coverage.runs["elements undecided"] += tolerance.skipped


def reported(seed: int, mismatch: Mismatch) -> tuple[int, str, str]:
    """A mismatch made small."""
    way = mismatch.way

    def fails(program: Program) -> bool:
        again = check(program, way)
        return again is not None and again.kind == mismatch.kind

    small = minimise(mismatch.program, fails)
    found = check(small, way) or mismatch
    return (
        seed,
        f"{way}: {found.where}: {found.detail[:600]}",
        found.program.script(way.mode, way.numerics, way.capture),
    )


# -- processes -----------------------------------------------------------------------------------
def _work(seeds: list[int], shares: Shares, current: Any, results: Any) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    found = Found()
    for number, seed in enumerate(seeds):
        current.value = seed
        signal.setitimer(signal.ITIMER_PROF, HANGS_AFTER)  # ends the process
        if number % (2 * BATCH) == 0:  # looking for a number's holders costs by the objects alive
            gc.unfreeze()
            gc.collect()
            gc.freeze()
        try:
            run_seed(seed, shares, found)
        except Exception:
            found.failures.append((seed, f"the test itself failed:\n{traceback.format_exc()}", ""))
        if number % BATCH == BATCH - 1 or found.failures:
            results.put(found)
            found = Found()
    results.put(found)
    current.value = -1


class Worker:
    """A process with its share of the seeds; when it dies or hangs, the next one goes on behind the
    seed at fault.
    """

    def __init__(self, seeds: list[int], shares: Shares, results: Any):
        self.seeds, self.shares, self.results = seeds, shares, results
        self.context = multiprocessing.get_context("spawn")
        self.start()

    def start(self) -> None:
        self.current = self.context.Value("q", -2)
        self.seen, self.since = -2, time.monotonic()
        self.process = self.context.Process(
            target=_work, daemon=True, args=(self.seeds, self.shares, self.current, self.results)
        )
        self.process.start()

    def watch(self) -> tuple[int, str, str] | None:
        """A crash or a hang, if there was one."""
        seed = self.current.value
        if seed != self.seen:
            self.seen, self.since = seed, time.monotonic()
        alive = self.process.is_alive()
        if alive and (seed < 0 or time.monotonic() - self.since < HANGS_AFTER * WAITING):
            return None
        if not alive and (seed == -1 or not self.seeds or self.process.exitcode == 0):
            self.seeds = []
            return None
        what = (
            f"hangs for {HANGS_AFTER} s"
            if alive or self.process.exitcode == -signal.SIGPROF
            else f"crashes with exit status {self.process.exitcode}"
        )
        self.process.kill()
        self.process.join()
        self.seeds = [] if seed < 0 else self.seeds[self.seeds.index(seed) + 1 :]
        if self.seeds:
            self.start()
        return (
            seed,
            f"the process {what}",
            f"# python -m tests.random_programs --seed {seed} --count 1 --jobs 1",
        )

    @property
    def done(self) -> bool:
        return not self.seeds or not self.process.is_alive() and self.current.value == -1


def dealt(seeds: range, jobs: int) -> list[list[int]]:
    """Each process's seeds: turn by turn of all the ways to run, so that none gets the long ones.

    >>> dealt(range(0, 200, 2), 2)[1][:3]
    [64, 66, 68]
    """
    return [[s for n, s in enumerate(seeds) if n // 32 % jobs == k] for k in range(jobs)]


def run_all(seeds: range, jobs: int, shares: Shares, minutes: float) -> Found:
    context = multiprocessing.get_context("spawn")
    results: Any = context.Queue()
    workers = [Worker(part, shares, results) for part in dealt(seeds, jobs)]
    total = Found()
    deadline = time.monotonic() + 60 * minutes
    shown = 0.0
    while not all(w.done for w in workers) and time.monotonic() < deadline:
        _collect(results, total)
        for worker in workers:
            failure = worker.watch()
            if failure:
                _report(total, failure)
        if time.monotonic() - shown > 30:
            shown = time.monotonic()
            print(
                f"{total.coverage.programs['all']} programs, {len(total.failures)} failures",
                flush=True,
            )
    for worker in workers:
        if not worker.done:
            worker.process.kill()
    _collect(results, total)
    return total


def _collect(results: Any, total: Found) -> None:
    try:
        while True:
            found = results.get(timeout=0.5)
            total.coverage.merge(found.coverage)
            for failure in found.failures:
                _report(total, failure)
    except Empty:
        return


def _report(total: Found, failure: tuple[int, str, str]) -> None:
    total.failures.append(failure)
    seed, what, script = failure
    print(f"\n=== seed {seed}: {what}\n{script}", flush=True)
