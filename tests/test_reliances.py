"""docs/cpython.md names each inside that is relied on, and files and tests that are there."""

import re
from pathlib import Path

import pytest

import tracejit.jit.capture.memoized_calls
import tracejit.jit.runtime.eager_words  # noqa: F401  (insides are known once files are imported)
from tracejit.core.memory import reliances

ROOT = Path(__file__).resolve().parent.parent
NAMES = ["caches", "eager_words", "handlers", "instructions", "proxies", "references", "referrers"]
USES = re.compile(r"""
    sys\.(getrefcount|_getframe|setprofile|settrace)|gc\.get_refer|pythonapi|memory_words|f_lasti
    |\bco_code\b|co_positions|\bimport\ dis\b|_is_owned|_at_fork_reinit|_lru_cache_wrapper
    |numpy\._core|cython_blas|ctypes\.CDLL\(path|numba\.core\ import|llvmlite\.binding\ import\ ffi
""", re.X)


def rows(text):
    """The cells of each row: inside, file, canary, fallback."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in text.splitlines() if line.startswith("|")]
    return [row for row in cells if row[0] != "inside" and not row[0].startswith("---")]


def missing(found):
    """What rows name that is not there, or not where it should be."""
    wrong = []
    for row in found:
        for cell, room in zip(row[1:3], ("tracejit/", "tests/")):
            wrong += [one for one in files(cell) or [cell]
                      if not one.startswith(room) or not (ROOT / one).exists()]
        if len(row) != 4 or not row[3]:
            wrong.append(row[0])
    return wrong


def files(cell):
    return re.findall(r"`([\w/]+\.py)`", cell)


def test_the_page_names_files_and_tests_that_are_there():
    found = rows((ROOT / "docs/cpython.md").read_text())
    assert len(found) > 10 and missing(found) == []
    assert missing([["x", "`tracejit/gone.py`", "`tests/test_gone.py`", ""]]) == [
        "tracejit/gone.py", "tests/test_gone.py", "x"]


def uses(sources):
    """The files whose code names an inside."""
    return sorted(path for path, text in sources.items() if USES.search(text))


def test_every_file_that_looks_inside_is_on_the_page():
    sources = {str(p.relative_to(ROOT)): p.read_text() for p in (ROOT / "tracejit").rglob("*.py")}
    named = {one for row in rows((ROOT / "docs/cpython.md").read_text()) for one in files(row[1])}
    assert sorted(set(uses(sources)) - named) == []
    assert uses({"a.py": "count = sys.getrefcount(x)", "b.py": "import sys"}) == ["a.py"]


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
