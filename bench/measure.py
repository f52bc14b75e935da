"""Interleaved timing: every contender of a workload takes turns, round by round.

In: `Workload`s, each naming a starter per contender. Out: one `Timing` per contender: the first
call, and the best of the rounds' medians. Called by `bench.__main__`.
"""

import gc
import math
import statistics
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# A contender is started once and then called; a call returns when its result is there.
Call = Callable[[], Any]
Starter = Callable[[], Call]

SECONDS_PER_TURN = 0.4
PAUSE = 0.05  # lets the last contender's spinning workers fall asleep
TIMER_FLOOR = 20e-6  # calls shorter than this are timed in batches


@dataclass
class Workload:
    """One piece of work and who does it, in the order of the table's columns."""

    name: str
    contenders: dict[str, Starter]
    tolerance: float = 1e-4


@dataclass
class Timing:
    """Seconds of one contender on one workload."""

    first: float
    medians: list[float] = field(default_factory=list)
    difference: float = 0.0  # of the first result, relative to the first contender's
    error: str = ""

    @property
    def best(self) -> float:
        return min(self.medians, default=math.nan)


@dataclass
class _Entrant:
    call: Call
    timing: Timing
    batch: int = 1
    calls: int = 1
    # Programs keep results: recycling only the very last buffer would flatter.
    held: deque[Any] = field(default_factory=lambda: deque(maxlen=2))


def as_numbers(result: Any) -> np.ndarray:
    """A contender's result, whoever made it, as float64."""
    if hasattr(result, "detach"):
        result = result.detach()
    return np.asarray(result, dtype=np.float64)


def difference(result: np.ndarray, reference: np.ndarray, unequal: float = 0.0) -> float:
    """Return the largest absolute difference relative to the reference's largest magnitude.

    unequal  the share of numbers that may differ by more, and are left out

    Infinity where shapes differ, or the places of infinities and NaN.
    """
    if result.shape != reference.shape or not np.all(
            np.isfinite(result) == np.isfinite(reference)):
        return math.inf
    scale = float(np.max(np.abs(reference), initial=0.0)) or 1.0
    apart = np.sort(np.abs(np.nan_to_num(result - reference)), axis=None) / scale
    kept = len(apart) - int(len(apart) * unequal)
    return float(apart[:kept].max(initial=0.0))


def _enter(start: Starter) -> tuple[_Entrant, np.ndarray]:
    call = start()
    begin = time.perf_counter()
    result = call()
    entrant = _Entrant(call, Timing(time.perf_counter() - begin))
    numbers = as_numbers(result)
    for _ in range(3):
        entrant.held.append(call())
    begin = time.perf_counter()
    entrant.held.append(call())
    once = time.perf_counter() - begin
    entrant.batch = 1 if once > TIMER_FLOOR else math.ceil(TIMER_FLOOR * 10 / max(once, 1e-7))
    entrant.calls = min(500, max(5, int(SECONDS_PER_TURN / (once * entrant.batch))))
    return entrant, numbers


def _turn(entrant: _Entrant) -> float:
    """The median seconds of a call, after a few calls that warm caches and wake workers."""
    call, held, batch = entrant.call, entrant.held, range(entrant.batch)
    for _ in range(3 * entrant.batch):
        held.append(call())
    seconds = []
    for _ in range(entrant.calls):
        begin = time.perf_counter()
        for _ in batch:
            held.append(call())
        seconds.append((time.perf_counter() - begin) / entrant.batch)
    return statistics.median(seconds)


def measure(workload: Workload, rounds: int) -> dict[str, Timing]:
    """Time every contender; one that fails keeps its error, and the others go on."""
    timings: dict[str, Timing] = {}
    entrants: dict[str, _Entrant] = {}
    reference: np.ndarray | None = None
    for name, start in workload.contenders.items():
        try:
            entrants[name], numbers = _enter(start)
        except Exception as error:
            timings[name] = Timing(math.nan, error=f"{type(error).__name__}: {error}")
            continue
        timings[name] = entrants[name].timing
        reference = numbers if reference is None else reference
        timings[name].difference = difference(numbers, reference)
    for _ in range(rounds):
        for entrant in entrants.values():
            time.sleep(PAUSE)
            gc.collect()
            entrant.timing.medians.append(_turn(entrant))
    return timings
