"""Pages for users are true: their blocks run, their links lead somewhere, and all are listed.

The blocks of a page run in one namespace, as test_tour.py runs them; UPDATE_GOLDEN=1 writes what
they print. Tutorials, how-to's and pages for newcomers have tests of their own.
"""

import ast
import doctest
import functools
import importlib.util
import os
import re
import tomllib
import warnings
from pathlib import Path

import pytest

import tracejit
from tests.errors.messages import _text
from tests.test_tour import rewritten, run_page
from tracejit.config import DECLARED, flags

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
ELSEWHERE = {  # pages and folders whose code other tests run
    "adding_an_op.md", "from_scratch.md", "tour.md", "coming_from", "howto", "rooms", "tutorials",
}
PAGES = sorted(page for page in DOCS.rglob("*.md") if "```python" in page.read_text()
               and page.relative_to(DOCS).parts[0] not in ELSEWHERE)
LINK = re.compile(r"\[[^\]\n]*\]\((?!https?:|mailto:)([^)\s]+)\)")
MADE = {"changelog.md": "CHANGELOG.md", "security.md": "SECURITY.md",
        "contributing.md": "CONTRIBUTING.md", "citation.md": "CITATION.cff"}


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def slug(heading: str) -> str:
    """Return the anchor that the site gives a heading.

    >>> slug("Why did `f` recompile, again?")
    'why-did-f-recompile-again'
    """
    text = re.sub(r"[^\w\s-]", "", heading.replace("`", "").lower()).strip()
    return re.sub(r"[\s-]+", "-", text)


def anchors(text: str) -> set[str]:
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


def dead_links(text: str, page: Path) -> list[str]:
    """Return the links of a page that lead to no file, or to no heading of one."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    found = []
    for target in LINK.findall(text):
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        if path.parent == DOCS and path.name in MADE:
            path = ROOT / MADE[path.name]
        if not path.is_file() or anchor and (
                slug(anchor) not in anchors(path.read_text() if path != page else text)):
            found.append(target)
    return found


@pytest.fixture
def process_as_before(monkeypatch, tmp_path):
    """A page may set seeds, flags, threads and modes; the next one starts without them."""
    monkeypatch.chdir(tmp_path)
    state, values = tracejit.get_rng_state(), {name: getattr(flags, name) for name in DECLARED}
    dtype = tracejit.get_default_dtype()
    with warnings.catch_warnings():
        yield
    for flag, value in values.items():
        setattr(flags, flag, value)
    tracejit.set_num_threads(None)
    tracejit.set_default_dtype(dtype)
    tracejit.set_rng_state(state)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_page_runs_and_prints_what_it_shows(page, process_as_before):
    text = page.read_text()
    if os.environ.get("UPDATE_GOLDEN"):
        text = rewritten(rewritten(text, name(page)), name(page))
        page.write_text(text)
    assert run_page(text, name(page)) == text.count("```python"), "a block that the runner skips"


@pytest.mark.parametrize(
    "page", sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")]), ids=name)
def test_links_lead_somewhere(page):
    assert dead_links(page.read_text(), page) == []


def test_a_dead_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    text = "# One two\n[a](gone.md) [b](#one-two) [c](#three) [d](page.md#one-two)\n"
    page.write_text(text)
    assert dead_links(text, page) == ["gone.md", "#three"]


HEADING = re.compile(r"^### `(.+)`$", re.MULTILINE)


@functools.cache
def texts_of(source: str) -> list[str]:
    """Return the texts in a file's source, with `{}` for what is computed."""
    return [text for node in ast.walk(ast.parse(source))
            if not isinstance(node, ast.FormattedValue) and (text := _text(node)) is not None]


def holds(text: str, parts: list[str]) -> bool:
    """Return True if the text has the parts in order."""
    at = 0
    for part in parts:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


def is_said(heading: str, sources: list[str]) -> bool:
    """Return True if a text of a file holds the parts of the heading between its dots."""
    parts = [part.strip() for part in re.split(r"\(?\.\.\.\)?", heading)]
    words = [word for part in parts for word in part.split()]
    likely = (source for source in sources if all(word in source for word in words))
    return any(holds(text, parts) for source in likely for text in texts_of(source))


def test_messages_of_troubleshooting_are_real():
    sources = [path.read_text() for path in sorted((ROOT / "tracejit").rglob("*.py"))]
    page = (DOCS / "troubleshooting.md").read_text()
    shown = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    sources.insert(0, "\n".join(map(repr, shown)))
    assert [one for one in HEADING.findall(page) if not is_said(one, sources)] == []
    assert not is_said("no such ... message", sources)


TEN = ("recompile", "kernel", "loop", "cache", "captured", "NaN", "first call", "reproducible",
       "checkpoint", "differs from PyTorch")


def test_ten_questions_have_headings_of_their_names():
    page = (DOCS / "questions.md").read_text()
    rows = re.findall(r"^\| (.+\?) \| \[[^\]]+\]\(([^)]+)\)", page, re.MULTILINE)
    assert [word for word, (question, _) in zip(TEN, rows) if word not in question] == []
    assert len(rows) == 10
    for question, target in rows:
        file, _, anchor = target.partition("#")
        assert anchor in ("", slug(question)), question
        assert anchor or file.startswith("coming_from/"), question


def test_every_page_is_in_the_navigation():
    lines = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    listed = set(re.findall(r"[\w/]+(?:\.md|/)(?=[\s\]]|$)", lines))
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    lacking = {page for page in pages if not {page, f"{page.rpartition('/')[0]}/"} & listed}
    gone = {page for page in listed if not (DOCS / page).exists()} - set(MADE) - {"api/"}
    assert (lacking, gone) == (set(), set())


def test_docstrings_become_markdown():
    path = DOCS / "making/docstrings.py"
    spec = importlib.util.spec_from_file_location("docstrings", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert doctest.testmod(module) == (0, 1)
    assert module.markdown_of("x[i] * `a*b`\n\n    kept as is\n\n>>> 1\n1") == (
        "x\\[i\\] \\* `a*b`\n\n```text\nkept as is\n```\n\n```pycon\n>>> 1\n1\n```")


def test_install_names_every_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"]) - {"dev", "test", "oracle", "bench"}
    page = (DOCS / "install.md").read_text()
    assert {extra for extra in extras if f"| `{extra}` |" not in page} == set()
