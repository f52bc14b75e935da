"""Timers: run statements in a loop until their time is known well enough.

In: statements as texts, and the names they use. Out: `Measurement`s. The clock is read after
devices have finished their work.
"""

from __future__ import annotations

import enum
import textwrap
import time
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit import cuda
from tracejit.core.memory.threads import get_num_threads, set_num_threads
from tracejit.utils.benchmark.measurement import Measurement, TaskSpec

_LARGEST_BLOCK = 2147483647


def timer() -> float:
    """Return seconds on a clock, once all work of a device is done."""
    if cuda.is_available():
        cuda.synchronize()
    return time.perf_counter()


class Language(enum.Enum):
    """Language of a statement."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Measures a Python statement.

    setup, global_setup   run once before each block of runs
    globals               names that the statement may use
    label, sub_label, description, env   names in tables: of the table, the row, the column
    num_threads           number of threads that kernels may use meanwhile

    >>> from tracejit.utils import benchmark
    >>> m = benchmark.Timer("x + 1", globals={"x": 1}).timeit(10)
    >>> len(m.times), m.number_per_run
    (1, 10)

    NotImplementedError for C++.
    """

    _timer_cls: type[timeit.Timer] = timeit.Timer

    def __init__(self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
                 timer: Callable[[], float] = timer, globals: dict[str, Any] | None = None,
                 label: str | None = None, sub_label: str | None = None,
                 description: str | None = None, env: str | None = None, num_threads: int = 1,
                 language: Language | str = Language.PYTHON) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if str(getattr(language, "name", language)).lower() not in ("python", "py"):
            raise NotImplementedError("benchmark.Timer: only Python statements are measured")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply "
                "be moved to `setup`.")
        stmt = textwrap.dedent(stmt)
        stmt = (stmt[1:] if stmt and stmt[0] == "\n" else stmt).rstrip()
        setup = textwrap.dedent(setup)
        setup = (setup[1:] if setup and setup[0] == "\n" else setup).rstrip()
        self._timer = self._timer_cls(stmt, setup, timer, dict(globals or {}))
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env,
                                   num_threads)

    def _timeit(self, number: int) -> float:
        """Return the seconds of a block; never zero, as others divide by it."""
        return max(self._timer.timeit(number), 1e-9)

    def _with_threads(self, measure: Callable[[], Any]) -> Any:
        before = get_num_threads()
        set_num_threads(self._task_spec.num_threads)
        try:
            return measure()
        finally:
            set_num_threads(before)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Measure one block of `number` runs, after a shorter one to warm up."""
        def measure() -> float:
            # The first runs capture, compile and fill caches.
            self._timeit(max(number // 100, 2))
            return self._timeit(number)

        return Measurement(number, [self._with_threads(measure)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Raise NotImplementedError: see `Timer.blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> None:
        """Raise NotImplementedError: see `Timer.blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> None:
        """Raise NotImplementedError: instructions are not counted."""
        raise NotImplementedError("benchmark.Timer: instructions are not counted")

    def _estimate_block_size(self, min_run_time: float) -> int:
        """Return the number of runs beside which the clock's own time is small."""
        # A block of no runs takes the time of the clock and the loop alone.
        overhead, number = float(np.median([self._timeit(0) for _ in range(5)])), 1
        while True:
            taken = self._timeit(number)
            long_enough = taken >= min_run_time / 1000
            if overhead / taken <= 1e-4 and long_enough or taken > min_run_time:
                return number
            if number * 10 > _LARGEST_BLOCK:
                return number
            number *= 10

    def _blocks(self, number: int, enough: Callable[[list[float]], bool], min_run_time: float,
                max_run_time: float, callback: Callable[[int, float], Any] | None) -> Measurement:
        times: list[float] = []
        while True:
            times.append(self._timeit(number))
            if callback is not None:
                callback(number, times[-1])
            if sum(times) > min_run_time and enough(times) or sum(times) > max_run_time:
                return Measurement(number, times, self._task_spec)

    def blocked_autorange(self, callback: Callable[[int, float], Any] | None = None,
                          min_run_time: float = 0.2) -> Measurement:
        """Measure blocks for at least `min_run_time` seconds, long enough that the clock does not
        matter. `callback` gets the number of runs and the time of each block."""
        return self._with_threads(lambda: self._blocks(
            self._estimate_block_size(min_run_time), lambda times: True, min_run_time,
            float("inf"), callback))

    def adaptive_autorange(self, threshold: float = 0.1, *, min_run_time: float = 0.01,
                           max_run_time: float = 10.0,
                           callback: Callable[[int, float], Any] | None = None) -> Measurement:
        """Measure blocks until the quarters of the times are less than `threshold` medians apart,
        or for `max_run_time` seconds."""
        def measure() -> Measurement:
            number = self._estimate_block_size(0.05)

            def enough(times: list[float]) -> bool:
                return len(times) > 3 and Measurement(
                    number, times, self._task_spec).meets_confidence(threshold)

            return self._blocks(number, enough, min_run_time, max_run_time, callback)

        return self._with_threads(measure)
