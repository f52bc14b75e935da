"""Tables of measurements: a table for each label, a row for each sub-label and number of threads, a
column for each description.

In: `Measurement`s. Out: text.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from tracejit.utils.benchmark.measurement import (
    Measurement,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

_BEST, _GOOD, _BAD = "\033[92m\033[1m", "\033[34m\033[1m", "\033[31m\033[1m"
_PLAIN = "\033[0m\033[0m"


class Colorize(enum.Enum):
    """Colours of times, by how they compare within columns or rows."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """Measurements beside each other; `print()` it, or `str` of it.

    >>> from tracejit.utils.benchmark import Compare, Measurement, TaskSpec
    >>> times = {"slow": 0.004, "fast": 0.002}
    >>> made = [Measurement(1, [t], TaskSpec("f()", "pass", label="sums", description=d))
    ...         for d, t in times.items()]
    >>> print(Compare(made))
    [---------- sums ----------]
              |  slow  |  fast
    1 threads: -----------------
        f()   |   4.0  |   2.0
    <BLANKLINE>
    Times are in milliseconds (ms).
    <BLANKLINE>
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trim = self._warn = False
        self._colors = Colorize.NONE
        self.extend_results(results)

    def extend_results(self, results: Sequence[Measurement]) -> None:
        """Take in more measurements; ValueError for anything else."""
        for r in results:
            if not isinstance(r, Measurement):
                raise ValueError("Expected an instance of `Measurement`, "
                                 f"got {type(r)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show no more digits than mean anything."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour times by how they compare with the best of the column, or row."""
        self._colors = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark times that vary much."""
        self._warn = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def __str__(self) -> str:
        results = Measurement.merge(self._results)
        labels = ordered_unique(r.task_spec.label for r in results)
        return "\n".join(self._table([r for r in results if r.task_spec.label == label])
                         for label in labels)

    def _table(self, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(r.median for r in results))
        columns = ordered_unique(r.task_spec.description for r in results)
        rows = ordered_unique((r.task_spec.num_threads, r.env, r.as_row_name) for r in results)
        # A stable sort: rows of one number of threads stay in order of appearance.
        rows.sort(key=lambda row: row[0])
        at = {((r.task_spec.num_threads, r.env, r.as_row_name), r.task_spec.description): r
              for r in results}
        cells = [[self._cell(at.get((row, c)), scale) for c in columns] for row in rows]
        heads = [str(c) if c is not None else "" for c in columns]
        widths = [max(len(heads[k]), *(len(line[k]) for line in cells)) for k in range(len(heads))]
        first = max([10, *(len(row[2]) + 6 for row in rows)])
        body, threads = [], None
        for row, line in zip(rows, cells):
            if row[0] != threads:
                threads = row[0]
                lead = f"{threads} threads: "
                body.append(lead + "-" * (first + sum(w + 5 for w in widths) - len(lead)))
            shown = [self._colored(text.rjust(w), row, c, at) for text, w, c in
                     zip(line, widths, columns)]
            body.append((f"    {row[2]}".ljust(first) + "|  " + "  |  ".join(shown)).rstrip())
        top = (" " * first + "|  " + "  |  ".join(
            h.center(w) for h, w in zip(heads, widths))).rstrip()
        label = f" {results[0].task_spec.label or results[0].task_spec.stmt} "
        title = "[" + label.center(len(body[0]) - 2, "-") + "]"
        notes = [f"Times are in {unit_to_english(unit)}s ({unit})."]
        if self._warn and any(r.has_warnings for r in results):
            notes.append("(! XX%) Measurement has high variance, where XX is the IQR / median * "
                         "100.")
        return "\n".join([title, top, *body, "", *notes, ""])

    def _cell(self, m: Measurement | None, scale: float) -> str:
        if m is None:
            return ""
        value, digits = m.median / scale, m.significant_figures
        text = f"{trim_sigfig(value, digits):g}" if self._trim else f"{value:.1f}"
        if self._warn and m.has_warnings:
            text += f" (! {m.iqr / m.median * 100:.0f}%)"
        return text

    def _colored(self, text: str, row: Any, column: Any, at: dict) -> str:
        m = at.get((row, column))
        if self._colors is Colorize.NONE or m is None:
            return text
        along = 0 if self._colors is Colorize.ROWWISE else 1
        same = [r.median for key, r in at.items() if key[along] == (row, column)[along]]
        part = m.median / min(same)
        color = _BEST if part <= 1.05 else _GOOD if part <= 1.25 else _BAD if part > 2 else ""
        return f"{color}{text}{_PLAIN}" if color else text
