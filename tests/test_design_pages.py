"""The pages for builders are short, cover each room, name files that exist, and show what runs."""

import os
import re
from pathlib import Path

import pytest

from tests.test_docstrings import MOST_WORDS, RELATIVE
from tests.test_rooms import ROOMS
from tests.test_tour import rewritten, run_page
from tracejit.config import flags

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "docs/rooms").glob("*.md"))
CHECKED = ["CONTRIBUTING.md", "docs/design.md", "docs/from_scratch.md", "docs/limits.md", *PAGES]
SHOW_KERNELS = ("docs/rooms/jit_lowering.md", "docs/rooms/jit_runtime.md")
FIRST = ("core", "docs", "jit", "tests", "tracejit")  # folders that begin the path of a file
NAMED = re.compile(r"`([\w./]+\.(?:py|md|txt))`")
LINKED = re.compile(r"\]\(([\w./]+\.md)\)")
OPENING = re.compile(rf"({'|'.join(map(str.capitalize, RELATIVE))})\b")


def relative_openings(text: str) -> list[str]:
    """Sentences and cells outside of code and headings that open with a relative or question."""
    text = re.sub(r"^(```.*?^```|#.*?)$", "", text, flags=re.MULTILINE | re.DOTALL)
    parts = re.split(r"\n\s*\n|\n(?=\s*[*-] |\s*\d+\. )|\|", text)
    plain = [re.sub(r"\*\*[^*]+\*\*|^\s*([*-]|\d+\.) ", "", part) for part in parts]
    sentences = [s for part in plain for s in re.split(r"(?<=[.!?:]) ", " ".join(part.split()))]
    return [sentence for sentence in sentences if OPENING.match(sentence)]


def missing_files(text: str, folder: Path = ROOT) -> list[str]:
    """Files that a page names in backticks, or links to from its folder, and that are gone."""
    named = [name for name in NAMED.findall(text) if name.split("/")[0] in FIRST]
    places = {name: (ROOT / name, ROOT / "tracejit" / name) for name in named}
    places |= {name: (folder / name,) for name in LINKED.findall(text)}
    return [name for name, tried in places.items() if not any(p.is_file() for p in tried)]


def test_design_is_short():
    assert len((ROOT / "docs/design.md").read_text().splitlines()) <= 200


def test_every_room_has_a_page():
    expected = {f"docs/rooms/{room.replace('.', '_')}.md" for room in ROOMS}
    assert sorted(expected - set(PAGES)) == [] and "docs/rooms/users.md" in PAGES
    design = (ROOT / "docs/design.md").read_text()
    assert [page for page in PAGES if page.removeprefix("docs/") not in design] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_takes_a_few_minutes(page):
    assert 60 <= len((ROOT / page).read_text().splitlines()) <= 150


@pytest.mark.parametrize("page", CHECKED)
def test_files_that_a_page_names_exist(page):
    assert missing_files((ROOT / page).read_text(), (ROOT / page).parent) == []


@pytest.mark.parametrize("page", CHECKED)
def test_sentences_begin_with_a_subject_or_a_verb(page):
    assert relative_openings((ROOT / page).read_text()) == []


def test_lines_of_the_map_are_short():
    lines = [line.partition(" - ")[2] for line in (ROOT / "docs/map.md").read_text().splitlines()]
    assert [line for line in lines if OPENING.match(line) or len(line.split()) > MOST_WORDS] == []


def test_a_relative_opening_is_found():
    page = "# Where to begin\n\nIt runs. What it\nreads is kept.\n\n"
    page += "```text\nWhat?\n```\n\n* **Guards.** How so"
    assert relative_openings(page) == ["What it reads is kept.", "How so"]


def test_a_missing_file_is_found():
    page = "`jit/ir/graph.py` `jit/gone.py` `core/gone.py` `fn.py` [x](gone.md) [y](map.md)"
    found = missing_files(page, ROOT / "docs")
    assert found == ["jit/gone.py", "core/gone.py", "gone.md"]


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page, monkeypatch, tmp_path):
    """UPDATE_GOLDEN=1 writes what the examples print, as in test_tour.py."""
    text = (ROOT / page).read_text()
    if page not in SHOW_KERNELS:  # no kernel is compiled for what these print
        monkeypatch.setattr(flags, "mode", "graph")
    monkeypatch.chdir(tmp_path)
    if os.environ.get("UPDATE_GOLDEN"):
        text = rewritten(rewritten(text, page), page)
        (ROOT / page).write_text(text)
    assert run_page(text, page) == text.count("```python") > 0
