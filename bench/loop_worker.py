"""One contender of one program in a process of its own: `python -m bench.loop_worker`.

In: the contender, the program, its sizes, a file for the result; then a line a command on standard
input: `first` or `turn`. Out: a line of JSON for each. Runs where tracejit is not installed, too.
"""

from __future__ import annotations

import gc
import importlib.metadata
import json
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench import loop_filters, loop_scalars, loop_simulations
from bench.loop_program import Program, Sizes, numbers_of
from bench.measure import TIMER_FLOOR, Call

PROGRAMS: dict[str, Program] = {
    program.name: program
    for part in (loop_simulations, loop_filters, loop_scalars) for program in part.PROGRAMS
}
SECONDS_PER_TURN = 0.3
MODULES = {"tracejit": "tracejit", "tracejit eager": "tracejit", "torch eager": "torch"}

VERSIONS = {"tracejit": ("tracejit", "numba", "llvmlite", "numpy"), "torch": ("torch",),
            "jax": ("jax", "jaxlib", "numpy")}


def started(contender: str, program: Program, sizes: Sizes) -> Call:
    """Import the contender, compile something trivial, and start the program."""
    if contender.startswith("jax"):
        import jax

        jax.jit(lambda x: x + 1)(jax.numpy.ones(3)).block_until_ready()
        return program.jax_call(jax, sizes)
    space: Any = __import__(MODULES[contender])
    wrap = space.script if contender == "tracejit" else lambda step: step
    wrap(lambda x: x + 1)(space.ones(3))
    return program.torch_call(space, wrap, sizes)


def turn(call: Call, once: float) -> float:
    """Return the median seconds of a call; short ones are timed in batches."""
    batch = range(1 if once > TIMER_FLOOR else 10)
    count = min(300, max(1, int(SECONDS_PER_TURN / (once * len(batch)))))
    if once < 0.05:
        for _ in range(3):
            call()
    gc.collect()
    seconds = []
    for _ in range(count):
        begin = time.perf_counter()
        for _ in batch:
            call()
        seconds.append((time.perf_counter() - begin) / len(batch))
    return statistics.median(seconds)


def _seconds(call: Call) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = call()
    return time.perf_counter() - begin, result


def _warm(call: Call) -> float:
    """Return the seconds of the fastest of a few calls: the second may still compile a part."""
    best, end = float("inf"), time.perf_counter() + SECONDS_PER_TURN
    for _ in range(4):
        best = min(best, _seconds(call)[0])
        if time.perf_counter() > end and best > SECONDS_PER_TURN:
            break
    return best


def save(path: Path, result: Any) -> None:
    """Write the parts of a result, each as one row of numbers."""
    parts = list(result) if isinstance(result, (list, tuple)) else [result]
    np.savez(path, *[numbers_of(part) for part in parts])


def load(path: Path) -> list[np.ndarray]:
    """Read what `save` wrote."""
    with np.load(path) as found:
        return [found[name] for name in found.files]


def main(argv: list[str]) -> None:
    """Answer commands until the input ends."""
    contender, name, sizes, path = argv
    call = started(contender, PROGRAMS[name], json.loads(sizes))
    packages = VERSIONS[contender.split()[0].split(".")[0]]
    have = {d.metadata["Name"].lower(): d.version for d in importlib.metadata.distributions()}
    _answer({"versions": {p: have[p] for p in packages if p in have}})
    once = 0.0
    for line in sys.stdin:
        if line.strip() == "first":
            first, result = _seconds(call)
            save(Path(path), result)
            once = first
            if first < 1.0 or "eager" not in contender:  # what compiles is warm later only
                once = _warm(call)
            _answer({"first": first, "once": once})
        else:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            _answer({"median": turn(call, once), "peak MiB": round(peak)})


def _answer(found: dict[str, Any]) -> None:
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
