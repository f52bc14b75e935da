"""What the machine can do at most, measured in the same run as the figures beside it.

    python -m bench.floors

In: nothing. Out: bytes a second of a copy (in memory and in the cache, on one thread and on all),
float32 products by shape, the time of dependent operations, and what a compiled call itself takes.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

SHAPES = ((64, 64, 64), (256, 256, 256), (1024, 1024, 1024), (32, 128, 512), (1024, 128, 512),
          (256, 784, 512), (4096, 64, 64))
SECONDS, PAUSE = 0.25, 0.1


def processor() -> dict[str, Any]:
    """Return the processor's name, family, model, flags that matter, and usable cores."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    pairs = [line.partition(":") for line in lines]
    found = {key.strip(): value.strip() for key, _, value in pairs}
    flags = set(found.get("flags", "").split())
    return {
        "name": found.get("model name", platform.processor()),
        "family": found.get("cpu family", "?"),
        "model": found.get("model", "?"),
        "flags": " ".join(flag for flag in ("avx2", "fma", "avx512f", "amx_tile") if flag in flags),
        "cores usable": len(os.sched_getaffinity(0)),
    }


def least(call: Callable[[], Any], seconds: float = SECONDS) -> float:
    """Return the seconds of the fastest call within a fixed time."""
    time.sleep(PAUSE)  # threads of what was measured before fall asleep
    call()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def _copies(count: int) -> Callable[[], Any]:
    source, target = np.ones(count, "f4"), np.empty(count, "f4")
    return lambda: np.copyto(target, source)


def _copies_on_all(count: int) -> Callable[[], Any]:
    """Return a copy in as many threads as there are cores; they sleep between calls."""
    threads = len(os.sched_getaffinity(0))
    source, target = np.ones(count, "f4"), np.empty(count, "f4")
    pairs = list(zip(np.array_split(target, threads), np.array_split(source, threads)))
    pool = ThreadPoolExecutor(threads)
    return lambda: list(pool.map(lambda pair: np.copyto(*pair), pairs))


def products() -> dict[str, float]:
    """Return operations a second of float32 products, by rows x inner x columns."""
    found = {}
    for rows, inner, columns in SHAPES:
        a, b = np.ones((rows, inner), "f4"), np.ones((inner, columns), "f4")
        out = np.empty((rows, columns), "f4")
        once = least(lambda a=a, b=b, out=out: np.matmul(a, b, out=out))
        found[f"{rows}x{inner}x{columns}"] = 2.0 * rows * inner * columns / once
    return found


def dependent() -> dict[str, float]:
    """Return seconds of a multiply and add, and of an exp, that wait for the one before."""
    import numba

    @numba.njit
    def chain(n: int, x: float) -> float:
        for _ in range(n):
            x = x * np.float32(0.999) + np.float32(0.5)
        return x

    @numba.njit
    def exps(n: int, x: float) -> float:
        for _ in range(n):
            x = np.exp(-x)
        return x

    count = 1 << 16
    one = np.float32(1.0)
    return {"multiply and add, s": least(lambda: chain(count, one)) / count,
            "exp, s": least(lambda: exps(count, one)) / count}


def launches() -> dict[str, float]:
    """Return seconds of compiled calls on 16 numbers, and of one on ready native code."""
    import tracejit

    x = tracejit.ones(16)
    step = tracejit.script(lambda x: x * 2.0 + 1.0)
    for _ in range(10):
        step(x)  # the first calls compile, the later ones what replays run
    found = {"tracejit": least(lambda: step(x))}
    try:
        import jax
    except ImportError:
        return found
    y, run = jax.numpy.ones(16), jax.jit(lambda x: x * 2.0 + 1.0)
    return found | {"jax.jit": least(lambda: run(y).block_until_ready())}


def measure() -> dict[str, Any]:
    """Return all floors: seconds, bytes or operations a second."""
    big, small = 1 << 25, 1 << 16
    alone = 8 * big / least(_copies(big))
    return {
        "processor": processor(),
        "copy on one thread, bytes/s": alone,
        "copy, bytes/s": max(alone, 8 * big / least(_copies_on_all(big))),
        "copy in cache, bytes/s": 8 * small / least(_copies(small)),
        "product f32, flop/s": products(),
        "dependent": dependent(),
        "launch, s": launches(),
    }


def text(found: dict[str, Any]) -> str:
    """Return the floors as lines."""
    chip = found["processor"]
    lines = [f"processor: {chip['name']}, family {chip['family']} model {chip['model']}, "
             f"{chip['cores usable']} cores usable, {chip['flags']}"]
    for key in ("copy on one thread, bytes/s", "copy, bytes/s", "copy in cache, bytes/s"):
        what = key.removesuffix(", bytes/s")
        lines.append(f"{what}: {found[key] / 1e9:.1f} GB/s read and written")
    rates = ", ".join(f"{shape} {rate / 1e9:.0f}"
                      for shape, rate in found["product f32, flop/s"].items())
    lines.append(f"float32 products, GFLOP/s: {rates}")
    lines.append(", ".join(f"{key.removesuffix(', s')} {value * 1e9:.2f} ns"
                           for key, value in found["dependent"].items()) + ", each after the other")
    lines.append("compiled call of 16 numbers, us: " + ", ".join(
        f"{key} {value * 1e6:.2f}" for key, value in found["launch, s"].items()))
    return "\n".join(lines)


if __name__ == "__main__":
    measured = measure()
    print(text(measured))
    print(json.dumps(measured))
