"""Pages made from declarations are current; every flag and every name of our own is on one."""

import re
from pathlib import Path

import pytest

from tests.reference_pages import DOCS, PAGES
from tests.test_design_pages import relative_openings
from tests.test_tour import run_page
from tracejit import config

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_declarations_say(name):
    page = PAGES[name]()
    assert (DOCS / name).read_text() == page, "python -m tests.reference_pages"
    assert relative_openings(page.replace("| it |", "|")) == []
    run_page(page, name)


def test_every_variable_of_the_package_is_declared():
    texts = [path.read_text() for path in (ROOT / "tracejit").rglob("*.py")]
    used = {name for text in texts for name in re.findall(r"\bTRACEJIT_[A-Z_]+\b", text)}
    declared = {flag.env for flag in config.DECLARED.values()}
    of_children = {  # a launcher gives them to its processes: no user's flags
        "TRACEJIT_JOB_KEY", "TRACEJIT_AGENT", "TRACEJIT_STAND_IN", "TRACEJIT_STAND_INS"}
    assert sorted(used - of_children ^ declared) == []


def test_every_flag_says_what_it_takes():
    assert [name for name, flag in config.DECLARED.items() if not flag.values] == []


def test_a_warning_ends_the_build_of_the_site():
    """mkdocs counts warnings in strict mode, and none at all with --quiet."""
    lines = (ROOT / "Makefile").read_text().splitlines()
    builds = [line for line in lines if "mkdocs build" in line]
    assert len(builds) == 2 and not any("quiet" in line or "-q " in line for line in builds)
    assert "\nstrict: true\n" in (ROOT / "mkdocs.yml").read_text()
    assert "make docs-check" in (ROOT / ".ci" / "run").read_text()
