"""`python -m tests.coverage_page`: which of the names that real programs use are there, and by what
each is shown to do what PyTorch's does.

In: `coverage_names.txt`, a tier and a name a line: what public PyTorch programs use, by how many of
them a tier covers; the rows of ops; the texts of the tests. Out: `docs/coverage.md`, which
`tests/test_coverage.py` compares with what this makes.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tracejit
from tests.opinfo import OpInfo, rows

TESTS = Path(__file__).parent
NAMES, PAGE = TESTS / "coverage_names.txt", TESTS.parent / "docs" / "coverage.md"
SHARES = {1: 50, 2: 75, 3: 90, 4: 95}  # percent of the programs that a tier and those before cover
_SHOWN = 2  # test files named for a name


def names() -> list[tuple[int, str]]:
    """(tier, name) as in `tracejit.<name>`."""
    lines = NAMES.read_text().splitlines()
    return [(int(tier), name) for tier, name in (line.split() for line in lines)]


def find(name: str) -> Any:
    """What has this name; AttributeError where nothing has."""
    found: Any = tracejit
    for part in name.split("."):
        if not hasattr(found, part) and hasattr(found, "__path__"):
            importlib.import_module(f"{found.__name__}.{part}")
        found = getattr(found, part)
    return found


def exists(name: str) -> bool:
    try:
        find(name)
    except (AttributeError, ImportError):
        return False
    return True


@functools.cache
def _rows() -> dict[str, list[OpInfo]]:
    """The rows of ops by the name they are for; variants of a name have a suffix."""
    found: dict[str, list[OpInfo]] = {}
    for row in rows():
        found.setdefault(re.split(r"[.:](?![a-z_]+$)", row.name)[0], []).append(row)
        found.setdefault(re.split(r"[.:]", row.name)[0], []).append(row)
    return found


@functools.cache
def _words() -> dict[str, frozenset[str]]:
    """The words of each test file."""
    left_out = ("coverage_page.py", "test_coverage.py", "mutant_rows")
    return {
        path.relative_to(TESTS.parent).as_posix(): frozenset(re.findall(r"\w+", path.read_text()))
        for path in sorted(TESTS.rglob("*.py"))
        if not path.name.startswith(left_out) and "random_programs" not in path.parts
    }


def rows_of(name: str) -> list[OpInfo]:
    """The rows of an op; in-place methods have those of the op they write the result of."""
    last = name.removeprefix("Tensor.").removeprefix("nn.functional.")
    for known in (last, last.rstrip("_"), last.split(".")[-1]):
        if known in _rows():
            return _rows()[known]
    return []


def tests_of(name: str) -> list[str]:
    """Test files that use a name; comparisons with PyTorch first."""
    found = [path for path, words in _words().items() if name.split(".")[-1] in words]
    return sorted(found, key=lambda path: ("oracle" not in path, path))[:_SHOWN]


def shown_by(name: str) -> str:
    """What shows that a name does what PyTorch's does."""
    known = rows_of(name)
    if known:
        return f"{len(known)} row{'s'[: len(known) != 1]}: {checked(known)}"
    return ", ".join(f"`{path.removeprefix('tests/')}`" for path in tests_of(name))


def checked(known: list[OpInfo]) -> str:
    """What of an op its rows compare."""
    dtypes = {d.name for row in known for d in row.dtypes}
    parts = [f"values in {len(dtypes)} dtype{'s'[: len(dtypes) != 1]}"]
    if any(row.differentiable for row in known):
        second = any(row.differentiable and row.second_order for row in known)
        parts.append("gradients" + (" to second order" if second else ""))
    parts.append("compiled" if any(row.compiled for row in known) else "eager")
    return ", ".join(parts)


def lines() -> Iterator[str]:
    everything = names()
    there = sum(exists(name) for _, name in everything)
    yield "# Which of PyTorch's names are there"
    yield ""
    yield (
        "The names that 1,080 files of public PyTorch programs use, in tiers, and what shows that "
        "each does here what it does there: rows of ops (`tests/ops/rows_*.py`), compared with "
        "PyTorch in values, dtypes and gradients, eager and compiled, or tests that use the name. "
        "Where PyTorch has samples of an operator they run as well "
        "(`tests/oracle/test_operator_samples.py`). Written by `python -m tests.coverage_page`; "
        "`tests/test_coverage.py` fails where a name is missing or nothing shows it."
    )
    yield ""
    yield f"{there} of {len(everything)} names are there."
    for tier, share in SHARES.items():
        mine = [name for k, name in everything if k == tier]
        yield ""
        yield f"## Tier {tier}: {len(mine)} names; with those before, {share} % of the files"
        yield ""
        yield "| name | shown by |"
        yield "| --- | --- |"
        for name in mine:
            yield f"| `{name}` | {shown_by(name) if exists(name) else '**missing**'} |"
    yield ""
    yield "## Ops with rows"
    yield ""
    yield "| op | rows | compared |"
    yield "| --- | --- | --- |"
    by_op: dict[str, list[OpInfo]] = {}
    for row in rows():
        by_op.setdefault(re.split(r"[.:]", row.name.removeprefix("linalg."))[0], []).append(row)
    for op in sorted(by_op):
        yield f"| `{op}` | {len(by_op[op])} | {checked(by_op[op])} |"


def page() -> str:
    return "\n".join(lines()) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
