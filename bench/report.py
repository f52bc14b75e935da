"""Figures of a run as a table, a plot and JSON, printed or written to `bench/results`.

    python -m bench.report loops.json npbench.json      writes tables and plots of earlier runs
    python -m bench.report half1.json half2.json        runs with the same name become one

In: a `Report`. Out: `NAME.json`, `NAME.md` and, where matplotlib is installed, `NAME.svg`. Called
by `bench.loops`, `bench.npbench` and `bench.eager`.
"""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.table import grid

RESULTS = Path(__file__).parent / "results"
Cell = dict[str, Any]  # "s", and perhaps "first" or "error"


@dataclass
class Report:
    """Seconds by row and contender; `extra` has more cells of a row, `notes` lines below."""

    name: str
    title: str
    columns: list[str]
    base: str = "tracejit"  # the column that the plot compares with
    conditions: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, dict[str, Cell]] = field(default_factory=dict)
    extra: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def seconds(self, row: str, column: str) -> float:
        """Return a figure, or NaN where there is none."""
        return float(self.rows[row].get(column, {}).get("s", math.nan))


def mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean of those that are numbers."""
    logs = [math.log(ratio) for ratio in ratios if math.isfinite(ratio) and ratio > 0]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def _shown(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    if "s" not in cell:
        return str(cell.get("error", "failed")).split("\n")[0][:40]
    first = f" ({cell['first']:.2f})" if "first" in cell else ""
    return f"{cell['s'] * 1e3:.4g}{first}"


def table(report: Report) -> str:
    """Return the rows in milliseconds; the first call in brackets, in seconds."""
    extra = list(dict.fromkeys(key for cells in report.extra.values() for key in cells))
    rows = []
    for name, cells in report.rows.items():
        more = report.extra.get(name, {})
        rows.append([name, *(_shown(cells.get(column)) for column in report.columns),
                     *(more.get(key, "-") for key in extra)])
    return grid(["ms (first call, s)", *report.columns, *extra], rows)


def _lines(conditions: dict[str, Any]) -> list[str]:
    lines = []
    for key, value in conditions.items():
        if isinstance(value, dict):
            value = ", ".join(f"{k} {v}" for k, v in value.items()) or "none"
        lines.extend(f"{key}: {value}".splitlines())
    return lines


def text(report: Report) -> str:
    """Return the page: title, conditions, table, notes."""
    given = "\n".join(f"* {line}" for line in _lines(report.conditions))
    notes = "\n".join(f"* {line}" for line in report.notes)
    return f"# {report.title}\n\n{given}\n\n{table(report)}\n\n{notes}\n"


def plot(report: Report, path: Path) -> bool:
    """Draw each contender's time over that of `base`, a line a row; False without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = report.name  # the same bytes for the same figures
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot

    names = [name for name in report.rows if math.isfinite(report.seconds(name, report.base))]
    figure, axes = pyplot.subplots(figsize=(7.5, 1.2 + 0.21 * len(names)), layout="constrained")
    places = range(len(names))
    for column in report.columns:
        ratios = [report.seconds(n, column) / report.seconds(n, report.base) for n in names]
        axes.plot(ratios, places, "|" if column == report.base else "o", label=column,
                  markersize=14 if column == report.base else 5, alpha=0.8)
    axes.set_xscale("log")
    axes.set_yticks(list(places), names, fontsize=7)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel("time over tracejit's; right of 1 is slower than tracejit", fontsize=8)
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return True


def write(report: Report, folder: Path = RESULTS) -> list[Path]:
    """Write the JSON, the page and the plot; return what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    made = [folder / f"{report.name}.{kind}" for kind in ("json", "md", "svg")]
    keep(report, made[0])
    drawn = plot(report, made[2])
    shown = f"\n![{report.title}]({report.name}.svg)\n" if drawn else ""
    made[1].write_text(text(report) + shown)
    return made if drawn else made[:2]


def keep(report: Report, path: Path | None) -> None:
    """Write the JSON so far, where asked: a run that is cut off keeps its rows."""
    if path is not None:
        path.write_text(json.dumps(asdict(report), indent=1) + "\n")


def finish(report: Report, path: Path | None, commit: bool) -> None:
    """Print the page; write the JSON where asked, and the results that are committed."""
    print(text(report))
    keep(report, path)
    if commit:
        print("written:", *(made.name for made in write(report)))


def joined(reports: Iterable[Report]) -> list[Report]:
    """Return a report for each name: later rows replace earlier ones, notes are made anew."""
    found: dict[str, Report] = {}
    for report in reports:
        whole = found.setdefault(report.name, report)
        if whole is not report:
            whole.rows |= report.rows
            whole.extra |= report.extra
            whole.conditions |= {"measured in": "several runs"}
    for whole in found.values():
        whole.notes = importlib.import_module(f"bench.{whole.name}").notes(whole)
    return list(found.values())


def main(paths: list[str]) -> None:
    """Write tables and plots of JSON files."""
    for report in joined(Report(**json.loads(Path(path).read_text())) for path in paths):
        print(*(made.name for made in write(report)))


if __name__ == "__main__":
    main(sys.argv[1:])
