"""NPBench's kernels written with tensors, on one thread, beside NumPy and numba.

    python -m bench.npbench
    python -m bench.npbench --only jacobi,adi --rounds 5 --json out.json

In: the kernels of `npbench_stencils`, `npbench_linear` and `npbench_others`. Out: milliseconds of
a call, geometric means, which kernels are captured whole, and those behind numba. numba compiles
NumPy's text as it is, or one with loops where it refuses that. The exit status is 1 when results
differ or a contender fails.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import multiprocessing
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench import floors, npbench_linear, npbench_others, npbench_stencils, peers, report
from bench.measure import difference as apart_by
from bench.npbench_kernel import Kernel
from bench.report import Cell, Report
from bench.selection import chosen

KERNELS = {kernel.name: kernel for part in (npbench_stencils, npbench_linear, npbench_others)
           for kernel in part.KERNELS}
CONTENDERS = ("numpy", "numba", "tracejit")
ONE = ("TRACEJIT_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
       "MKL_NUM_THREADS")
SECONDS_PER_TURN, CALLS_PER_TURN = 0.2, 50


class Run:
    """A contender of a kernel. Every call starts from the same arrays, copied before the clock."""

    def __init__(self, function: Callable[..., Any], given: list[Any], tensors: bool):
        self.fresh = given
        self.arrays = [a.copy() if isinstance(a, np.ndarray) else a for a in given]
        self.function, self.given = function, self.arrays
        if tensors:
            import tracejit

            self.given = [tracejit.from_numpy(a) if isinstance(a, np.ndarray) else a
                          for a in self.arrays]

    def once(self) -> tuple[float, Any]:
        """Return the seconds of a call and its result."""
        for array, fresh in zip(self.arrays, self.fresh):
            if isinstance(array, np.ndarray):
                np.copyto(array, fresh)
        begin = time.perf_counter()
        result = self.function(*self.given)
        return time.perf_counter() - begin, result

    def turn(self) -> float:
        """Return the median of calls within a fixed time."""
        seconds, end = [], time.perf_counter() + SECONDS_PER_TURN
        while not seconds or time.perf_counter() < end and len(seconds) < CALLS_PER_TURN:
            seconds.append(self.once()[0])
        return statistics.median(seconds)

    def numbers(self, result: Any) -> list[np.ndarray]:
        """Return what a call gives and what it wrote."""
        parts = () if result is None else result if isinstance(result, tuple) else (result,)
        written = [a for a in self.arrays if isinstance(a, np.ndarray)]
        return [np.array(part) for part in (*parts, *written)]


def function_of(kernel: Kernel, contender: str) -> Any:
    """Return what a contender runs."""
    if contender == "numpy":
        return kernel.plain
    if contender == "numba":
        return compiled(kernel.loops or kernel.plain)
    import tracejit

    return tracejit.script(kernel.for_tensors())


def compiled(function: Any) -> Any:
    """Return a function, and those of its file that it calls, compiled by numba."""
    import types

    import numba

    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        other = names.get(name)
        if isinstance(other, types.FunctionType) and other.__globals__ is function.__globals__:
            names[name] = compiled(other)
    return numba.njit(types.FunctionType(function.__code__, names, function.__name__))


def difference(found: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """Return the largest difference, relative to the largest number of the same part."""
    if len(found) != len(expected):
        return math.inf
    return max((apart_by(a, b) for a, b in zip(found, expected)), default=0.0)


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the body after some seconds."""
    def late(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def _first(kernel: Kernel, contender: str, tiny: bool, limit: float) -> tuple[Run, Cell, Any]:
    """Make the first call; the cell says how long it took, and if the program is one graph."""
    given = kernel.arrays(kernel.tiny if tiny else kernel.full)
    run = Run(function_of(kernel, contender), given, contender == "tracejit")
    with within(limit):
        first, result = run.once()
    cell: Cell = {"first": first} if contender != "numpy" else {}
    numbers = run.numbers(result)
    if contender == "tracejit":
        found = run.function.report()
        reasons = [str(one.reason) for one in (*found.breaks, *found.unrolled)]
        cell["captured"], cell["why"] = not reasons, "; ".join(dict.fromkeys(reasons))
    return run, cell, numbers


def measure(kernel: Kernel, rounds: int, tiny: bool, limit: float,
            who: tuple[str, ...] = CONTENDERS) -> dict[str, Cell]:
    """Start every contender, compare, then time them in turns."""
    cells: dict[str, Cell] = {}
    runs: dict[str, Run] = {}
    expected: Any = None
    for contender in who:
        try:
            run, cells[contender], numbers = _first(kernel, contender, tiny, limit)
        except TimeoutError:
            cells[contender] = {"error": f"over {limit:.0f} s"}
            continue
        except Exception as error:
            cells[contender] = {"error": f"failed: {type(error).__name__}: {error}"[:300]}
            continue
        expected = numbers if expected is None else expected
        cells[contender]["difference"] = difference(numbers, expected)
        runs[contender] = run
    medians: dict[str, list[float]] = {contender: [] for contender in runs}
    for _ in range(rounds):
        for contender, run in runs.items():
            medians[contender].append(run.turn())
            cells[contender]["s"] = min(medians[contender])
    return cells


def _child(pipe: Any, *given: Any) -> None:
    pipe.send(measure(*given))


def apart(kernel: Kernel, rounds: int, tiny: bool, limit: float) -> dict[str, Cell]:
    """Measure in a process of its own, which starts where this one stands."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=_child, args=(there, kernel, rounds, tiny, limit))
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(4 * limit) else {"tracejit": {"error": "ended late"}}
    except EOFError:
        return {"tracejit": {"error": "failed: the process ended"}}
    finally:
        process.kill()
        process.join()


def wrong(name: str, cells: dict[str, Cell]) -> list[str]:
    """Return what makes the exit status 1."""
    lines = []
    for contender, cell in cells.items():
        if str(cell.get("error", "")).startswith("failed"):
            lines.append(f"{name}, {contender}: {cell['error']}")
        elif cell.get("difference", 0.0) > KERNELS[name].tolerance:
            lines.append(f"{name}, {contender}: the result differs by {cell['difference']:.1e}")
    return lines


def notes(found: Report) -> list[str]:
    """Return the means, what is captured, and who is behind numba."""
    def ratios(other: str) -> dict[str, float]:
        return {row: found.seconds(row, other) / found.seconds(row, "tracejit")
                for row in found.rows}

    numba = ratios("numba")
    behind = [f"{row} {1 / ratio:.2f}x" for row, ratio in numba.items() if ratio * 1.2 < 1]
    cells = {row: cells.get("tracejit", {}) for row, cells in found.rows.items()}
    not_captured = [f"{row} ({cell.get('error') or cell.get('why', '')})"
                    for row, cell in cells.items() if not cell.get("captured")]
    return [
        f"captured whole: {len(cells) - len(not_captured)} of {len(cells)}",
        f"NumPy takes {report.mean(ratios('numpy').values()):.2f} times tracejit's time, numba "
        f"{report.mean(numba.values()):.2f} times (geometric means)",
        f"tracejit takes over 1.2 times numba's time on: {', '.join(behind) or 'none'}",
        f"not captured whole: {'; '.join(not_captured) or 'none'}",
        *(line for name, row in found.rows.items() for line in wrong(name, row))]


def on_one_thread() -> None:
    """Start again with one thread for every library, which read their variables when loaded."""
    if all(os.environ.get(name) == "1" for name in ONE) and "OPENBLAS_CORETYPE" not in os.environ:
        return
    environ = {**os.environ, **dict.fromkeys(ONE, "1")}
    environ.pop("OPENBLAS_CORETYPE", None)
    os.execve(sys.executable, [sys.executable, "-m", "bench.npbench", *sys.argv[1:]], environ)


def main(argv: list[str] | None = None) -> int:
    """Measure and print; the exit status is 1 when results differ or a contender failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.npbench",
                                     description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="parts of kernel names, comma separated")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each contender")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds a first call may take")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes: are the results equal?")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--commit", action="store_true", help="write bench/results/npbench.*")
    options = parser.parse_args(argv)
    on_one_thread()
    names = chosen((kernel.name for kernel in KERNELS.values()), options.only, parser)
    conditions = peers.conditions(peers.find(["tracejit"], torch_compile=False))
    found = Report("npbench", "NPBench's kernels on one thread", list(CONTENDERS),
                   conditions={"processor": floors.processor(), **conditions})
    for kernel in KERNELS.values():
        if kernel.name in names:
            print(f"measuring {kernel.name} ...", file=sys.stderr, flush=True)
            row = apart(kernel, options.rounds, options.tiny, options.limit)
            found.rows[kernel.name] = row
            found.extra[kernel.name] = _extras(found, kernel.name)
            report.keep(found, options.json)
    found.notes = notes(found)
    report.finish(found, options.json, options.commit)
    return 1 if any(wrong(name, row) for name, row in found.rows.items()) else 0


def _extras(found: Report, name: str) -> dict[str, str]:
    ours = found.seconds(name, "tracejit")
    ratios = {f"{other} / tracejit": found.seconds(name, other) / ours
              for other in ("numpy", "numba")}
    shown = {key: f"{ratio:.2f}x" if math.isfinite(ratio) else "-" for key, ratio in ratios.items()}
    cell = found.rows[name].get("tracejit", {})
    return shown | {"captured": "yes" if cell.get("captured") else "no"}


if __name__ == "__main__":
    sys.exit(main())
