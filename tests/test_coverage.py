"""The names that real PyTorch programs use are there, and something shows what they do."""

from tests import coverage_page


def test_no_name_of_the_tiers_is_missing():
    assert [name for _, name in coverage_page.names() if not coverage_page.exists(name)] == []


def test_every_name_is_shown_by_something():
    unshown = [name for _, name in coverage_page.names() if not coverage_page.shown_by(name)]
    assert unshown == []


def test_the_page_is_what_there_is():
    assert coverage_page.PAGE.read_text() == coverage_page.page(), (
        "docs/coverage.md differs: python -m tests.coverage_page"
    )
