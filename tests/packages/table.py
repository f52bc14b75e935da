"""Documented use of public packages, on tracejit beside PyTorch: the table of docs/packages.md.

In: names of programs, or none for all of them. Out: a line a program, and the page with their rows.
Called by `make test-packages`. Each program runs in three processes: PyTorch, eager, captured.
"""

import importlib.metadata
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "packages.md"
SECONDS = 300
# Results agree if they differ by at most this much, relative to the largest number of the result.
TOLERANCE = 2e-4
DISTRIBUTIONS = {"pyro": "pyro-ppl", "torch_geometric": "torch_geometric"}


class Row(NamedTuple):
    """One package: is each way right, and does each captured function replay without a break."""

    name: str
    version: str
    eager: str
    captured: str
    replays: str

    @property
    def counts(self) -> tuple[bool, bool, bool]:
        return self.eager == "yes", self.captured == "yes", self.replays == "yes"


def ran(name: str, library: str, way: str) -> dict[str, Any]:
    """Run a program in a process of its own; return its results, or {"error": text}."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        start = ["-m", "tracejit", "run"] if library == "tracejit" else []
        command = [sys.executable, *start, str(HERE / "run.py"), name, way, str(path)]
        environment = dict(os.environ, PYTHONPATH=str(HERE.parent.parent))
        try:
            done = subprocess.run(command, env=environment, capture_output=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return {"error": f"no result after {SECONDS} s"}
        if not path.exists():
            return {"error": done.stderr.decode(errors="replace").strip()[-400:] or "no result"}
        return json.loads(path.read_text())


def numbers(value: Any) -> list[float]:
    """Return the numbers of a nested list, in order."""
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    return [float(value)]


def agree(ours: Any, theirs: Any) -> bool:
    """Return True if two results have one structure and close numbers."""
    if type(ours) is not type(theirs):
        return False
    if isinstance(theirs, dict) and set(theirs) == {"dtype", "values"}:
        return ours["dtype"] == theirs["dtype"] and close(ours["values"], theirs["values"])
    if isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(agree(ours[k], theirs[k]) for k in theirs)
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(agree, ours, theirs))
    if isinstance(theirs, float):
        return close(ours, theirs)
    return ours == theirs


def close(ours: Any, theirs: Any) -> bool:
    a, b = numbers(ours), numbers(theirs)
    if len(a) != len(b):
        return False
    largest = max((abs(y) for y in b if math.isfinite(y)), default=0.0)
    return all(
        x == y or math.isnan(x) and math.isnan(y) or abs(x - y) <= TOLERANCE * largest
        for x, y in zip(a, b)
    )


def compared(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Return "yes", or what is not right."""
    if "error" in ours:
        return ours["error"].splitlines()[0][:140]
    wrong = [
        a["title"]
        for a, b in zip(ours["functions"], theirs["functions"])
        if not agree(a["results"], b["results"])
    ]
    return "yes" if not wrong else "differs: " + ", ".join(wrong)


def replayed(captured: dict[str, Any]) -> str:
    """Return "yes" if every function was replayed and named no break, else how many and why not."""
    if "error" in captured:
        return "no"
    functions = captured["functions"]
    others = [f for f in functions if f["breaks"] or not f["hits"]]
    if not others:
        return "yes"
    reason = others[0]["breaks"][0] if others[0]["breaks"] else "no replay"
    count = f"{len(functions) - len(others)} of {len(functions)}; "
    return f"{count if len(functions) > 1 else ''}{others[0]['title']}: {shortened(reason)[:140]}"


def shortened(reason: str) -> str:
    """Return the reason with the paths of files as seen from the folder of packages."""
    reason = reason.replace(f"{PAGE.parent.parent}/", "")
    return re.sub(r"(?:/[^/ ]+)*/(?:site-packages|lib/python[^/]*)/", "", reason)


def row(name: str) -> Row:
    theirs = ran(name, "torch", "plain")
    if "error" in theirs:
        raise SystemExit(f"{name} does not run on PyTorch: {theirs['error']}")
    eager, captured = ran(name, "tracejit", "plain"), ran(name, "tracejit", "captured")
    version = importlib.metadata.version(DISTRIBUTIONS.get(name, name.replace("_", "-")))
    return Row(
        name, version, compared(eager, theirs), compared(captured, theirs), replayed(captured)
    )


def page(rows: list[Row]) -> str:
    totals = [sum(answers) for answers in zip(*(found.counts for found in rows))]
    lines = [
        "# Packages written for PyTorch",
        "",
        "`make test-packages` writes this page. Each package's program (`tests/packages/programs/`)"
        " runs unchanged,",
        "with tracejit in PyTorch's place. Results of five calls are compared with PyTorch's.",
        "*eager*: the functions run plainly. *captured*: each is handed to `script`."
        " *replays*: each of them",
        "was replayed and its report names no break; else how many of them, and the first break.",
        "",
        f"Of {len(rows)} packages {totals[0]} are right eagerly, {totals[1]} captured, "
        f"and {totals[2]} replay.",
        "",
        "| package | version | eager | captured | replays |",
        "| --- | --- | --- | --- | --- |",
    ]
    for found in rows:
        cells = [str(cell).replace("|", "\\|") for cell in found]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def rows_of(text: str) -> list[Row]:
    """Read the rows of a page.

    >>> rows_of(page([Row("einops", "1", "yes", "a | b", "no")]))[0].captured
    'a | b'
    """
    lines = [line[2:-2] for line in text.splitlines() if line.startswith("| ")][2:]
    return [Row(*(c.replace("\\|", "|") for c in line.split(" | "))) for line in lines]


def main() -> None:
    programs = sorted(path.stem for path in (HERE / "programs").glob("*.py"))
    known = {found.name: found for found in rows_of(PAGE.read_text())}
    for name in sys.argv[1:] or programs:
        known[name] = row(name)
        print(" | ".join(known[name]), flush=True)
        PAGE.write_text(page([known[name] for name in programs if name in known]))


if __name__ == "__main__":
    main()
