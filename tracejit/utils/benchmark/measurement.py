"""Measurements: the times a statement took, and their statistics.

In: times of several blocks of runs. Out: median, spread, the number of significant digits. Made by
`Timer`, read by `Compare`.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

_MOST_DIGITS = 4
_LEAST_CONFIDENCE = 25e-9  # seconds: no clock tells less apart
_WORTH_A_WARNING, _WORTH_NOTICE = 0.25, 0.1  # of the median
_UNITS = {-3: ("ns", 1e-9), -2: ("us", 1e-6), -1: ("ms", 1e-3)}
_ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}


def select_unit(t: float) -> tuple[str, float]:
    """Return the unit that fits a time best, and its length in seconds.

    >>> select_unit(0.002)
    ('ms', 0.001)
    """
    # Floor division: 0.002 has the exponent -3, which is -1 in thousands.
    return _UNITS.get(int(math.log10(t) // 3), ("s", 1))


def unit_to_english(u: str) -> str:
    """Return the unit's name."""
    return _ENGLISH[u]


def trim_sigfig(x: float, n: int) -> float:
    """Return a number with `n` significant digits.

    >>> trim_sigfig(1234.5, 2)
    1200.0
    """
    scale = 10 ** (math.ceil(math.log10(x)) - n) if x else 1.0
    return float(round(x / scale) * scale)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Return elements without repetitions, in order."""
    return list(dict.fromkeys(elements))


@dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """Statement that is measured, and its names in tables."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """Label and sub-label; the statement where there is no label."""
        more = f": {self.sub_label}" if self.sub_label else ""
        if self.label is not None:
            return self.label + more
        if "\n" not in self.stmt:
            return self.stmt + more
        beside = f" ({self.sub_label})" if self.sub_label else ""
        return f"stmt:{beside}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self) -> str:
        """Return the setup, if there is one."""
        if self.setup == "pass" or not self.setup:
            return ""
        if "\n" in self.setup:
            return f"setup:\n{textwrap.indent(self.setup, '  ')}"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Return title, description and setup, each on its line."""
        parts = (self.title, self.description or "", self.setup_str())
        return "\n".join(f"{part}\n" if "\n" in part else part for part in parts if part)


@dataclass(init=True, repr=False)
class Measurement:
    """Times of blocks of `number_per_run` runs each, in seconds.

    >>> import tracejit.utils.benchmark as benchmark
    >>> m = Measurement(10, [0.001, 0.002, 0.003], TaskSpec("f()", "pass"))
    >>> m.median, len(m.times), m.significant_figures
    (0.0002, 3, 1)
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        # Before `task_spec` is set, as in unpickling, asking for it would recurse.
        if name != "task_spec" and hasattr(TaskSpec, name) or name in TaskSpec.__annotations__:
            return getattr(self.task_spec, name)
        raise AttributeError(name)

    @property
    def times(self) -> list[float]:
        """Seconds of one run, by block."""
        return [t / self.number_per_run for t in self.raw_times]

    def _quantile(self, part: float) -> float:
        if not self.raw_times:
            raise ValueError("No measurements.")
        return float(np.quantile(self.times, part))

    @property
    def median(self) -> float:
        """Median of `times`."""
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        """Mean of `times`."""
        return float(np.mean(self.times))

    @property
    def iqr(self) -> float:
        """Distance between the quarters of `times`."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """Number of significant digits of the median, from the middle half of the times."""
        ordered = sorted(self.times)
        # Outliers come from the machine: the middle half says more about the statement.
        middle = ordered[len(ordered) // 4:math.ceil(3 * len(ordered) / 4)]
        spread = 1.645 * float(np.std(middle)) / math.sqrt(len(middle))
        digits = math.floor(math.log10(self.median / max(spread, _LEAST_CONFIDENCE)))
        return min(max(digits, 1), _MOST_DIGITS)

    @property
    def has_warnings(self) -> bool:
        """True if times differ so much that something else was at work."""
        return bool(self._warning())

    def _warning(self) -> str:
        part = self.iqr / self.median
        if part <= _WORTH_NOTICE:
            return ""
        why = ("This suggests significant environmental influence." if part > _WORTH_A_WARNING
               else "This could indicate system fluctuation.")
        lead = "  WARNING: "
        return (f"{lead}Interquartile range is {part * 100:.1f}% of the median measurement.\n"
                f"{' ' * len(lead)}{why}")

    def meets_confidence(self, threshold: float = _WORTH_NOTICE) -> bool:
        """Return True if the quarters are less than `threshold` medians apart."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """Name of a row in a table: the sub-label, or the statement."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        count, threads = len(self.raw_times), self.task_spec.num_threads
        lines = [object.__repr__(self), self.task_spec.summarize(),
                 f"  {'Median: ' if count > 1 else ''}{self.median / scale:.2f} {unit}"]
        if count >= 4:
            low, high = self._quantile(0.25) / scale, self._quantile(0.75) / scale
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        lines.append(
            f"  {count} measurement{'s' if count > 1 else ''}, {self.number_per_run} runs "
            f"{'per measurement,' if count > 1 else ','} {threads} "
            f"thread{'s' if threads > 1 else ''}")
        return "\n".join([*lines, *filter(None, [self._warning()])])

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Make one measurement of those of the same task."""
        groups: dict[TaskSpec, list[Measurement]] = {}
        for m in measurements:
            groups.setdefault(m.task_spec, []).append(m)
        return [Measurement(1, [t for m in group for t in m.times], spec)
                for spec, group in groups.items()]
