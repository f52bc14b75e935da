"""Loops over time: what a longer sequence costs to compile, and a training step beside peers.

    python -m bench.control_flow                     lengths 8, 64 and 512
    python -m bench.control_flow --lengths 8,512 --processes 5 --peers jax

In: an RNN whose Python `for` runs over the first dimension, trained by SGD. Out: a table: seconds
of the first step in a process with an empty kernel cache (the least of several processes; eager
shows what is no compilation), and microseconds of later steps. `jax.lax.scan` where jax is there.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

BATCH, INPUTS, HIDDEN = 16, 32, 64
ROUNDS, SECONDS = 5, 0.3
CONTENDERS = ("tracejit", "tracejit eager", "jax")


def _arrays(length: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    shapes = (length, BATCH, INPUTS), (INPUTS, HIDDEN), (HIDDEN, HIDDEN)
    return tuple(rng.normal(size=shape).astype(np.float32) * 0.1 for shape in shapes)


def with_tracejit(captured: bool, length: int) -> Callable[[], float]:
    """A training step over a sequence of this length."""
    import tracejit

    x, w, u = (tracejit.tensor(array) for array in _arrays(length))
    optimizer = tracejit.optim.SGD([w.requires_grad_(), u.requires_grad_()], lr=0.01)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        h = tracejit.zeros(BATCH, HIDDEN)
        for t in range(x.shape[0]):
            h = tracejit.tanh(x[t] @ w + h @ u)
        loss = (h * h).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = tracejit.script(step, fullgraph=True) if captured else step
    return lambda: run(x).item()


def with_jax(length: int) -> Callable[[], float]:
    """The same step with `lax.scan`."""
    import jax
    from jax import numpy as jnp

    x, *start = (jnp.asarray(array) for array in _arrays(length))
    state = {"parameters": tuple(start)}

    def loss(parameters: Any, x: Any) -> Any:
        w, u = parameters
        first = jnp.zeros((BATCH, HIDDEN))
        h, _ = jax.lax.scan(lambda h, item: (jnp.tanh(item @ w + h @ u), None), first, x)
        return (h * h).mean()

    @jax.jit
    def step(parameters: Any, x: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(parameters, x)
        return value, tuple(p - 0.01 * g for p, g in zip(parameters, slopes))

    def run() -> float:
        value, state["parameters"] = step(state["parameters"], x)
        return float(value)

    return run


def _child(contender: str, length: int) -> None:
    """Print the seconds of the first step, of a later one, and the first loss, as JSON."""
    captured = contender == "tracejit"
    run = with_jax(length) if contender == "jax" else with_tracejit(captured, length)
    begin = time.perf_counter()
    loss = run()
    first = time.perf_counter() - begin
    print(json.dumps([first, min(_round(run) for _ in range(ROUNDS)), loss]))


def _round(run: Callable[[], float]) -> float:
    """Seconds of the fastest call within a fixed time."""
    end, fastest = time.perf_counter() + SECONDS, float("inf")
    while time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        fastest = min(fastest, time.perf_counter() - begin)
    return fastest


def _process(contender: str, length: int) -> list[float]:
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-m", "bench.control_flow", "--child", contender, str(length)],
            env={**os.environ, "TRACEJIT_CACHE_DIR": cache},
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout.strip().rpartition("\n")[2])


def measure(contender: str, length: int, processes: int) -> tuple[float, float, float]:
    """Least first step, least later step, first loss, over processes with empty caches."""
    firsts, later, losses = zip(*[_process(contender, length) for _ in range(processes)])
    return min(firsts), min(later), losses[0]


def table(found: dict[tuple[str, int], tuple[float, float, float]], lengths: list[int]) -> str:
    """The figures, and how much longer the longest sequence takes to compile than the shortest."""
    lines = [f"{'contender':<16}{'T':>6}{'first step s':>14}{'later step us':>15}{'loss':>12}"]
    for (name, length), (first, later, loss) in found.items():
        lines.append(f"{name:<16}{length:>6}{first:>14.3f}{later * 1e6:>15.0f}{loss:>12.6f}")
    for name in dict.fromkeys(name for name, _ in found if name != "tracejit eager"):
        low, high = found[name, min(lengths)], found[name, max(lengths)]
        ratio = (high[0] - high[1]) / (low[0] - low[1])
        span = f"T={max(lengths)} over T={min(lengths)}"
        lines.append(f"{name}: compile time at {span}: {ratio:.2f}x")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lengths", default="8,64,512")
    parser.add_argument("--processes", type=int, default=3, help="processes per figure")
    parser.add_argument("--peers", default="jax", help="jax, or none")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        _child(options.child[0], int(options.child[1]))
        return 0
    lengths = [int(text) for text in options.lengths.split(",")]
    jax = "jax" in options.peers and importlib.util.find_spec("jax") is not None
    names = [name for name in CONTENDERS if jax or name != "jax"]
    found = {(n, t): measure(n, t, options.processes) for n in names for t in lengths}
    print(table(found, lengths))
    return 0


if __name__ == "__main__":
    sys.exit(main())
