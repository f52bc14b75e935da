"""Guides are true: tutorials, how-to's and the pages for newcomers run, and print what they show.

The blocks of a page run in one namespace, as test_tour.py runs them. `FIGURES`, the folder that a
tutorial's pictures go to, is there before the first. UPDATE_GOLDEN=1 writes pages and pictures.
"""

import os
import re
import warnings
from pathlib import Path

import pytest

import tracejit
from tests.test_tour import rewritten, run_page
from tracejit.config import DECLARED, flags

ROOT = Path(__file__).resolve().parent.parent
TUTORIALS = ROOT / "docs/tutorials"
FOLDERS = ("tutorials", "howto", "coming_from")
PAGES = sorted(page for folder in FOLDERS for page in (ROOT / "docs" / folder).glob("*.md"))
WITH_CODE = [page for page in PAGES if page.stem != "index"]
PICTURE = re.compile(r"!\[([^\]]+)\]\(figures/(\w+\.svg)\)")
LINK = re.compile(r"(?<!!)\[[^\]]+\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
MOST_LINES = 60  # of a how-to
LARGEST = 60_000  # bytes of a picture


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(autouse=True)
def process_as_before(monkeypatch, tmp_path):
    """A page may set seeds, flags, threads and modes; the next one starts without them."""
    monkeypatch.chdir(tmp_path)
    state, values = tracejit.get_rng_state(), {name: getattr(flags, name) for name in DECLARED}
    dtype = tracejit.get_default_dtype()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")  # no date, and names in SVG that stay the same
    with warnings.catch_warnings():
        yield
    for flag, value in values.items():
        setattr(flags, flag, value)
    tracejit.set_num_threads(None)
    tracejit.set_default_dtype(dtype)
    tracejit.set_rng_state(state)


# Each of these trains for seconds; the others run each time.
LONG = {"docs/tutorials/gpt.md", "docs/tutorials/ode_fit.md"}


@pytest.mark.parametrize("page", [
    pytest.param(page, marks=[pytest.mark.full] if name(page) in LONG else [])
    for page in WITH_CODE], ids=name)
def test_page(page, tmp_path):
    text = page.read_text()
    if page.parent == TUTORIALS:
        settings = pytest.importorskip("matplotlib").rcParams
        settings.update({"svg.hashsalt": "guides", "svg.fonttype": "none"})
    if "sklearn" in text:
        pytest.importorskip("sklearn", reason="the page uses its data")
    if os.environ.get("UPDATE_GOLDEN"):
        text = rewritten(text, name(page), FIGURES=TUTORIALS / "figures")
        page.write_text(text)
    count = run_page(text, name(page), FIGURES=tmp_path)
    assert count == text.count("```python") > 0, "a block that the runner does not see"
    pictures = {match[2] for match in PICTURE.finditer(text)}
    assert pictures == {path.name for path in tmp_path.glob("*.svg")}, "pictures shown, and made"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_what_a_page_refers_to_is_there(page):
    text = page.read_text()
    for target in LINK.findall(text):
        assert (page.parent / target).exists(), f"{name(page)} links to {target}"
    for alternative, picture in PICTURE.findall(text):
        path = page.parent / "figures" / picture
        assert path.read_text().lstrip().startswith("<?xml") and len(alternative) > 10
        assert path.stat().st_size < LARGEST, f"{picture} is too large for the page"


def test_every_picture_is_shown():
    shown = {match[2] for page in PAGES for match in PICTURE.finditer(page.read_text())}
    assert shown == {path.name for path in (TUTORIALS / "figures").iterdir()}


def test_a_howto_is_one_short_question():
    pages = [page for page in WITH_CODE if page.parent.name == "howto"]
    assert len(pages) >= 15
    for page in pages:
        lines = page.read_text().splitlines()
        assert re.fullmatch(r"# (How|Why|Which|What) .+\?", lines[0]), f"{name(page)}: {lines[0]}"
        assert len(lines) <= MOST_LINES, f"{name(page)} has {len(lines)} lines"


@pytest.mark.parametrize("folder", FOLDERS)
def test_an_index_lists_every_page(folder):
    listed = LINK.findall((ROOT / "docs" / folder / "index.md").read_text())
    pages = [page.name for page in WITH_CODE if page.parent.name == folder]
    assert sorted(listed) == sorted(pages)


def test_an_index_has_the_titles_of_howtos():
    index = (ROOT / "docs/howto/index.md").read_text()
    for page in WITH_CODE:
        if page.parent.name == "howto":
            assert f"[{page.read_text().splitlines()[0][2:]}]({page.name})" in index
