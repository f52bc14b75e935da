"""The pages with code are true: their blocks run, in order, and print what the page shows.

Each ```python block of a page runs in one namespace; a ```text block right after it holds what
it prints, with `...` for what differs from run to run.
"""

import contextlib
import doctest
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\s*^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def run_page(text: str, name: str) -> int:
    """Run the blocks of one page; AssertionError shows where printed and shown text differ."""
    namespace: dict[str, object] = {"__name__": f"page {name}"}
    checker = doctest.OutputChecker()
    blocks = list(BLOCK.finditer(text))
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        # Blank lines in front: a traceback then names the line of the page.
        code = compile("\n" * line + block[1], name, "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        got, want = printed.getvalue(), block[2] or ""
        assert checker.check_output(want, got, doctest.ELLIPSIS), (
            f"{name}:{line + 1}: the page shows\n{want}\nbut the block prints\n{got}"
        )
    return len(blocks)


@pytest.mark.parametrize("page", ["docs/tour.md", "README.md"])
def test_page(page, monkeypatch, tmp_path):
    text = (ROOT / page).read_text()
    monkeypatch.chdir(tmp_path)
    assert run_page(text, page) == text.count("```python"), "a block that the runner does not see"


def test_blocks_share_a_namespace():
    page = "```python\na = 2\n```\n\n```python\nprint(a + 1)\n```\n\n```text\n3\n```\n"
    assert run_page(page, "page.md") == 2


@pytest.mark.parametrize("shown", ["```text\n4\n```\n", "no output shown\n"])
def test_a_wrong_output_is_found(shown):
    with pytest.raises(AssertionError, match=r"page.md:2: the page shows"):
        run_page("```python\nprint(3)\n```\n" + shown, "page.md")


def test_dots_stand_for_what_differs():
    run_page("```python\nprint('took 3.1 ms')\n```\n```text\ntook ... ms\n```\n", "page.md")
