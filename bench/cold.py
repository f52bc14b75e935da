"""Cold start: seconds from the start of a process to the first loss of the MLP step.

In: a contender's name. Out: medians over processes, imports included, with an empty and with a
filled kernel cache. A child is this very module: `python -m bench.cold jax`.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COLUMNS = {"tracejit": "tracejit", "tracejit eager": "tracejit eager", "jax": "jax.jit",
           "torch": "torch eager"}


def _child(contender: str) -> None:
    from bench import training

    if contender == "jax":
        import jax

        start = training.with_jax(jax, training.WIDE, [256])
    elif contender == "torch":
        import torch

        start = training.torch_like(torch, lambda step: step, training.WIDE, [256])
    else:
        import tracejit

        wrap = tracejit.script if contender == "tracejit" else lambda step: step
        start = training.torch_like(tracejit, wrap, training.WIDE, [256])
    loss = float(start()())
    print(time.time(), loss)


def _process(arguments: list[str], cache: str) -> tuple[float, str]:
    """Seconds from just before the process is made to the time it prints, and what follows."""
    environ = {
        **os.environ,
        "TRACEJIT_CACHE_DIR": cache,
        "JAX_COMPILATION_CACHE_DIR": str(Path(cache, "jax")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    begin = time.time()
    run = subprocess.run([sys.executable, *arguments], env=environ, capture_output=True,
                         text=True, timeout=300)
    if run.returncode:
        raise RuntimeError(run.stderr.strip().splitlines()[-1])
    end, _, rest = run.stdout.strip().rpartition("\n")[2].partition(" ")
    return float(end) - begin, rest


def first_result(contender: str, processes: int) -> dict[str, float]:
    """Medians: the cache empty, and filled by the process before."""
    arguments = ["-m", "bench.cold", contender]
    cold, warm = [], []
    for _ in range(processes):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(_process(arguments, cache)[0])
            warm.append(_process(arguments, cache)[0])
    return {"empty cache": statistics.median(cold), "warm cache": statistics.median(warm)}


def import_time(package: str, processes: int) -> float:
    """Median seconds of the import statement in a process that has imported nothing else."""
    code = (
        f"import time; begin = time.perf_counter(); import {package}; "
        "print(time.time(), time.perf_counter() - begin)"
    )
    with tempfile.TemporaryDirectory() as cache:
        return statistics.median(
            float(_process(["-c", code], cache)[1]) for _ in range(processes)
        )


def measure(present: list[str], processes: int) -> dict[str, dict[str, float | str]]:
    """Per column: first results and import time; an error takes the place of the figures."""
    found: dict[str, dict[str, float | str]] = {}
    for contender, column in COLUMNS.items():
        package = contender.split()[0]
        if package not in present:
            continue
        try:
            # One process nobody counts: it fills the file system's cache and makes bytecode.
            import_time(package, 1)
            found[column] = {**first_result(contender, processes)}
            found[column]["import"] = import_time(package, processes)
        except RuntimeError as error:
            found[column] = {"error": str(error)}
    return found


if __name__ == "__main__":
    _child(sys.argv[1])
