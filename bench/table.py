"""Figures as text: a column per contender, milliseconds per call, first call in brackets."""

import json
import math
from collections.abc import Sequence
from typing import Any

from bench.measure import Timing, Workload

Results = dict[str, dict[str, Timing]]


def grid(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(header, *rows)]
    dashes = ["-" * width for width in widths]
    lines = ("| " + " | ".join(c.ljust(w) for c, w in zip(row, widths)) + " |"
             for row in [header, dashes, *rows])
    return "\n".join(lines)


def _milliseconds(timing: Timing | None) -> str:
    if timing is None:
        return "-"
    return "failed" if timing.error else f"{timing.best * 1e3:.4g} ({timing.first:.2f})"


def steady(results: Results) -> str:
    """Milliseconds per call; in brackets the first call, in seconds."""
    columns = list(dict.fromkeys(column for row in results.values() for column in row))
    rows = [[name, *(_milliseconds(row.get(c)) for c in columns)] for name, row in results.items()]
    return grid(["ms per call (first call, s)", *columns], rows)


def cold(figures: dict[str, dict[str, float | str]]) -> str:
    """Seconds from process start to the first loss of the MLP step."""
    kinds = ["empty cache", "warm cache", "import"]
    rows = []
    for column, row in figures.items():
        shown = [f"{row[k]:.2f}" if k in row else "failed" for k in kinds]
        rows.append([column, *shown])
    return grid(["s, process start to first MLP step", *kinds], rows)


def remarks(results: Results, work: dict[str, Workload]) -> list[str]:
    """Contenders that failed, or whose first result differs from the first column's."""
    found = []
    for name, row in results.items():
        for column, timing in row.items():
            if timing.error:
                found.append(f"{name}, {column}: {timing.error}")
            elif timing.difference > work[name].tolerance:
                found.append(f"{name}, {column}: result differs by {timing.difference:.1e}")
    return found


def conditions(found: dict[str, Any]) -> str:
    """Machine, threads and versions, one line each."""
    lines = []
    for key, value in found.items():
        if isinstance(value, dict):
            value = ", ".join(f"{k} {v}" for k, v in value.items()) or "none"
        lines.append(f"{key}: {value}")
    return "\n".join(lines)


def as_json(
    results: Results, figures: dict[str, dict[str, float | str]], costs: Sequence[Any],
    found: dict[str, Any],
) -> str:
    """Everything, for a later comparison."""
    def plain(timing: Timing) -> dict[str, Any]:
        best = None if math.isnan(timing.best) else timing.best
        return {**vars(timing), "best": best} if not timing.error else {"error": timing.error}

    rows = {name: {c: plain(t) for c, t in row.items()} for name, row in results.items()}
    kept = {"conditions": found, "seconds": rows, "cold": figures,
            "dispatch, us": [vars(series) for series in costs]}
    return json.dumps(kept, indent=1)
