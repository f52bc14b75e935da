"""Sums of everything, of rows and of columns, beside NumPy and another checkout, interleaved.

    python bench/sums.py [PATH]     PATH: a checkout of another revision to compare with

Each revision runs in a process of its own; they take turns, size by size.
"""

import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

SIZES = [(100, 100), (10_000, 64), (1000, 1000), (64, 10_000), (4096, 1024), (2_000_000, 2)]
ROUNDS = 7


def _best(call):  # type: ignore[no-untyped-def]
    best, end = float("inf"), time.perf_counter() + 0.1
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best * 1e6


def _serve() -> None:
    """Answers each size on standard input with microseconds of full, row and column sums."""
    import numpy as np

    import tracejit

    sums = [tracejit.script(lambda x, d=d: x.sum(d)) for d in (None, 1, 0)]
    for line in sys.stdin:
        x = tracejit.rand(*json.loads(line))
        array = x.numpy()
        dims = (None, 1, 0)
        own = [_best(partial(f, x)) for f in sums]
        eager = [_best(partial(x.sum, d)) for d in dims]
        library = [_best(partial(np.sum, array, d)) for d in dims]
        print(json.dumps([own, eager, library]), flush=True)


def _process(path: Path) -> subprocess.Popen:
    command = [sys.executable, __file__, "--serve"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "PYTHONPATH": str(path)})  # fmt: skip


def main() -> None:
    paths = [Path(__file__).resolve().parent.parent, *map(Path, sys.argv[1:2])]
    processes = [_process(path) for path in paths]
    print("size, kind: microseconds compiled, eager, NumPy; compiled and eager over the other's")
    for size in SIZES:
        found: list[list] = [[] for _ in paths]
        for _ in range(ROUNDS):
            for process, answers in zip(processes, found):
                assert process.stdin is not None and process.stdout is not None
                print(json.dumps(size), file=process.stdin, flush=True)
                answers.append(json.loads(process.stdout.readline()))
        for k, kind in enumerate(("full", "row", "column")):
            best = [[min(a[way][k] for a in answers) for way in range(3)] for answers in found]
            line = f"{size!s:>15} {kind:>6}: " + " ".join(f"{x:9.1f}" for x in best[0])
            if len(best) > 1:
                line += "   " + " ".join(f"{best[0][w] / best[1][w]:6.3f}" for w in (0, 1))
            print(line, flush=True)
    for process in processes:
        process.kill()


if __name__ == "__main__":
    _serve() if "--serve" in sys.argv else main()
