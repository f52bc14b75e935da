"""Eager mode beside PyTorch eager: twelve rows, without a decorator.

    python -m bench.eager
    python -m bench.eager --only softmax,mlp --rounds 5 --json out.json

In: the workloads of `python -m bench`, and Black-Scholes. Out: medians in milliseconds, ratios,
their geometric mean, and shares of floors. The exit status is 1 when results differ.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench import floors, networks, peers, pointwise, report, rows, training
from bench.measure import Call, Starter, Timing, Workload, measure
from bench.peers import Peers
from bench.report import Report
from bench.selection import chosen

OURS, THEIRS = "tracejit eager", "torch eager"
ROWS = ("GELU 4M", "tiny call", "softmax", "layer_norm + GELU, fwd+bwd", "cross-entropy, fwd+bwd",
        "MLP step", "tiny MLP step", "20 batch sizes", "Black-Scholes, fwd+bwd", "LeNet step",
        "LSTM language model step", "GPT step")
OPTIONS = 1_000_000
TOLERANCE = 1e-3


def _prices(space: Any) -> Callable[..., Any]:
    def normal(x: Any) -> Any:
        return 0.5 * (1.0 + space.erf(x / math.sqrt(2.0)))

    def call_price(spot: Any, strike: Any, years: Any, rate: float, volatility: float) -> Any:
        spread = volatility * space.sqrt(years)
        d1 = (space.log(spot / strike) + (rate + 0.5 * volatility ** 2) * years) / spread
        paid = strike * space.exp(-rate * years)
        return spot * normal(d1) - paid * normal(d1 - spread)

    return call_price


def _black_scholes(space: Any, count: int) -> Starter:
    def start() -> Call:
        rng = np.random.default_rng(7)
        given = [(low + rng.random(count)).astype("f4") for low in (1.0, 1.0, 0.5)]
        spot, strike, years = map(space.from_numpy, given)
        spot.requires_grad_()
        price = _prices(space)

        def call() -> Any:
            (delta,) = space.autograd.grad(price(spot, strike, years, 0.02, 0.3).sum(), [spot])
            return delta

        return call

    return start


def workloads(found: Peers, tiny: bool = False) -> list[Workload]:
    """Return the twelve rows, each with the two that run op by op."""
    spaces = [(name, space) for name, space, _ in found.torch_like() if name in (OURS, THEIRS)]
    count = 100 if tiny else OPTIONS
    priced = Workload("Black-Scholes, fwd+bwd",
                      {name: _black_scholes(space, count) for name, space in spaces})
    every = {w.name: w for w in [*pointwise.workloads(found), *rows.workloads(found),
                                 *training.workloads(found), *networks.workloads(found), priced]}
    return [replace(every[name], contenders={c: s for c, s in every[name].contenders.items()
                                             if c in (OURS, THEIRS)}) for name in ROWS]


# Seconds that the bytes or products of a row take at least; gradients and updates included.
def _floor(name: str, floor: dict[str, Any]) -> float:
    bandwidth, product = floor["copy, bytes/s"], floor["product f32, flop/s"]
    moved = {"GELU 4M": 2 * 4_000_000, "softmax": 2 * 4096 * 1024,
             "layer_norm + GELU, fwd+bwd": 2 * 4096 * 1024,
             "cross-entropy, fwd+bwd": 2 * 4096 * 1000, "Black-Scholes, fwd+bwd": 4 * OPTIONS}
    if name in moved:
        return 4 * moved[name] / bandwidth
    if name == "MLP step":
        weights = sum(a * b for a, b in zip(training.WIDE, training.WIDE[1:]))
        first = training.WIDE[0] * training.WIDE[1]  # no gradient of the input
        return 2 * 256 * (3 * weights - first) / product["256x784x512"]
    return math.nan


def _cells(timings: dict[str, Timing]) -> dict[str, dict[str, Any]]:
    return {name: {"error": timing.error} if timing.error else
            {"s": timing.best, "difference": timing.difference} for name, timing in timings.items()}


def fill(found: Report, work: list[Workload], floor: dict[str, Any], rounds: int,
         path: Path | None) -> None:
    """Measure the rows into the report, which is kept after each."""
    for workload in work:
        print(f"measuring {workload.name} ...", file=sys.stderr, flush=True)
        timings = measure(workload, rounds)
        found.rows[workload.name] = _cells(timings)
        ours = found.seconds(workload.name, OURS)
        ratio, share = ours / found.seconds(workload.name, THEIRS), math.nan
        if floor:
            share = _floor(workload.name, floor) / ours
        found.extra[workload.name] = {
            "tracejit / torch": f"{ratio:.2f}x",
            "floor / tracejit": f"{share:.0%}" if math.isfinite(share) else "-"}
        report.keep(found, path)


def notes(found: Report) -> list[str]:
    """Return the geometric mean, rows above the goal, and what differs or failed."""
    ratios = [found.seconds(row, OURS) / found.seconds(row, THEIRS) for row in found.rows]
    slower = [row for row, ratio in zip(found.rows, ratios) if ratio > 1.2]
    return [f"tracejit takes {report.mean(ratios):.2f} times PyTorch's time (geometric mean of "
            f"{len(ratios)}); above 1.2: {'; '.join(slower) or 'none'}", *wrong(found)]


def wrong(found: Report) -> list[str]:
    """Return what makes the exit status 1: results that differ, contenders that failed."""
    return [f"{row}, {column}: {cell.get('error') or 'the result differs'}"
            for row, cells in found.rows.items() for column, cell in cells.items()
            if cell.get("error") or cell["difference"] > TOLERANCE]


def main(argv: list[str] | None = None) -> int:
    """Measure and print; the exit status is 1 when a contender failed or results differ."""
    parser = argparse.ArgumentParser(prog="python -m bench.eager",
                                     description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="parts of row names, comma separated")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each contender")
    parser.add_argument("--no-floors", action="store_true", help="measure no floors")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--commit", action="store_true", help="write bench/results/eager.*")
    options = parser.parse_args(argv)
    there = peers.find(["tracejit", "torch"], torch_compile=False)
    conditions = peers.conditions(there)
    floor = {} if options.no_floors else floors.measure()
    names = chosen(ROWS, options.only, parser)
    work = [w for w in workloads(there) if w.name in names]
    found = Report("eager", "Eager mode beside PyTorch eager", [OURS, THEIRS],
                   base=OURS, conditions=conditions)
    if floor:
        conditions["machine"] = floors.text(floor)
    fill(found, work, floor, options.rounds, options.json)
    found.notes = notes(found)
    conditions["load at the end"] = round(os.getloadavg()[0], 2)
    report.finish(found, options.json, options.commit)
    return 1 if wrong(found) else 0


if __name__ == "__main__":
    sys.exit(main())
