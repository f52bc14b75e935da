"""HTML of a report, for notebooks: the summary, and tables of the rest.

In: a `Report`. Out: a fragment of HTML without scripts. Called by `Report._repr_html_`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_CELL = "text-align:left;vertical-align:top;white-space:pre-wrap"


def report_html(report: Any) -> str:
    """Return the summary as text, then what it counts as tables that open on a click."""
    kernels = [
        (kernel.title, kernel.loops, f"{kernel.kib_moved:.1f}",
         "" if kernel.seconds is None else f"{kernel.seconds * 1e6:.1f}",
         " ".join(kernel.ops), "\n".join(kernel.lines()))
        for kernel in report.kernels
    ]
    causes = [(r.path, r.old, r.new, r.where, r.hint) for r in report.recompiles]
    breaks = [(b.location or "", b.location.text.strip() if b.location else "", b.reason, b.hint)
              for b in report.breaks]
    parts = [
        f"<pre>{escape(chr(10).join(report.summary()))}</pre>",
        _table("kernels, in order", ("kernel", "loops", "KiB moved", "us", "ops", "lines"),
               kernels),
        _table("recompiled", ("what", "expected", "found", "function", "hint"), causes),
        _table("breaks", ("line", "text", "reason", "hint"), breaks),
        _table("runs plainly", ("reason",), [(reason,) for reason in report.runs_plainly]),
        _table("guards", ("condition",), [(guard,) for guard in report.guards]),
    ]
    return "".join(parts)


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table that is closed at first; "" without rows."""
    found = [_row("td", row) for row in rows]
    if not found:
        return ""
    body = "".join([_row("th", heads), *found])
    return (f"<details><summary>{escape(title)}: {len(found)}</summary>"
            f"<table>{body}</table></details>")


def _row(tag: str, cells: Iterable[Any]) -> str:
    shown = (f'<{tag} style="{_CELL}">{escape(str(cell))}</{tag}>' for cell in cells)
    return f"<tr>{''.join(shown)}</tr>"
