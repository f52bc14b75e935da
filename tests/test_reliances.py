"""docs/cpython.md names each inside that is relied on, and files and tests that are there."""

import re
from pathlib import Path

import pytest

import tracejit.capture.instructions
import tracejit.eager.sole_gradients
import tracejit.memory.referrers  # noqa: F401
from tracejit.memory import reliances

ROOT = Path(__file__).resolve().parent.parent
NAMES = ["instructions", "references", "referrers"]


def rows(text):
    """The cells of each row: inside, file, canary, fallback."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in text.splitlines() if line.startswith("|")]
    return [row for row in cells if row[0] != "inside" and not row[0].startswith("---")]


def missing(found):
    """What rows name that is not there, or not where it should be."""
    wrong = []
    for row in found:
        file, canary = (re.fullmatch(r"`([\w/]+\.py)`", cell) for cell in row[1:3])
        if not (file and file[1].startswith("tracejit/") and (ROOT / file[1]).exists()):
            wrong.append(row[1])
        if not (canary and canary[1].startswith("tests/") and (ROOT / canary[1]).exists()):
            wrong.append(row[2])
        if len(row) != 4 or not row[3]:
            wrong.append(row[0])
    return wrong


def test_the_page_names_files_and_tests_that_are_there():
    found = rows((ROOT / "docs/cpython.md").read_text())
    assert len(found) > 10 and missing(found) == []
    assert missing([["x", "`tracejit/gone.py`", "`tests/test_gone.py`", ""]]) == [
        "`tracejit/gone.py`", "`tests/test_gone.py`", "x"]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_asked_at_run_time_holds_here_and_is_on_the_page(name):
    found = [row for row in rows((ROOT / "docs/cpython.md").read_text())
             if row[0].startswith(f"`{name}`")]
    assert len(found) == 1
    assert reliances.known[name].fallback in found[0][3]
    assert reliances.known[name].canary() is True


def test_every_registered_inside_is_named():
    sources = "".join(p.read_text() for p in (ROOT / "tracejit").rglob("*.py"))
    assert sorted(re.findall(r'^@relies\("(\w+)"', sources, re.M)) == NAMES
