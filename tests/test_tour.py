"""The pages with code are true: their blocks run, in order, and print what the page shows.

Each ```python block of a page runs in one namespace; a ```text block right after it holds what
it prints, with `...` for what differs from run to run. UPDATE_GOLDEN=1 writes the pages anew.
"""

import ast
import contextlib
import doctest
import io
import linecache
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracejit.jit import compiled_function

IMPORTS = (ast.Import, ast.ImportFrom)
ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\s*^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


# What no page shows: digests in kernel names, times, how much is guarded in a whole step.
VARYING = [(r"_[0-9a-f]{8}\b", "_..."), (r"compiling [\d.]+ s.*", "compiling ..."),
           (r"; \d+ guards", "; ... guards")]


def only_code(text: str) -> list[str]:
    """The lines of a page, empty where they are no Python: one module with the page's numbers."""
    inside = {
        number
        for block in BLOCK.finditer(text)
        for number in range(text.count("\n", 0, block.start(1)), text.count("\n", 0, block.end(1)))
    }
    lines = text.splitlines(keepends=True)
    return [line if number in inside else "\n" for number, line in enumerate(lines)]


def printed_by(text: str, name: str, **given: object) -> Iterator[tuple[re.Match[str], str]]:
    """Run the blocks of one page in order; each with what it printed. `given`: names it may use."""
    # Graphs and kernels quote the lines they came from, and `script` reads the source.
    lines = only_code(text)
    linecache.cache[name] = (len(text), None, lines, name)
    compiled_function._segments.clear()  # equal functions of other pages would lend their lines
    # Python compiles calls through names that a file imports differently: the page is one file.
    imports = [s for s in ast.parse("".join(lines)).body if isinstance(s, IMPORTS)]
    namespace: dict[str, object] = {"__name__": f"page {name}", **given}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        # Blank lines in front: a traceback then names the line of the page.
        tree = ast.parse("\n" * line + block[1], name)
        code = compile(ast.Module([*imports, *tree.body], []), name, "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        yield block, printed.getvalue()


def run_page(text: str, name: str, **given: object) -> int:
    """Run the blocks of one page; AssertionError shows where printed and shown text differ."""
    checker, count = doctest.OutputChecker(), 0
    for block, got in printed_by(text, name, **given):
        line, want, count = text.count("\n", 0, block.start(1)), block[2] or "", count + 1
        assert checker.check_output(want, got, doctest.ELLIPSIS), (
            f"{name}:{line + 1}: the page shows\n{want}\nbut the block prints\n{got}"
        )
    return count


def rewritten(text: str, name: str, **given: object) -> str:
    """The page with what its blocks print now."""
    parts, at = [], 0
    for block, got in printed_by(text, name, **given):
        for pattern, dots in VARYING:
            got = re.sub(pattern, dots, got)
        shown = f"\n```text\n{got}```" + "\n" * (block[2] is None) if got else ""
        parts += [text[at : block.start()], f"```python\n{block[1]}```\n", shown]
        at = block.end()
    return "".join([*parts, text[at:]])


@pytest.mark.parametrize("page", ["docs/tour.md", "docs/from_scratch.md", "README.md"])
def test_page(page, monkeypatch, tmp_path):
    text = (ROOT / page).read_text()
    monkeypatch.chdir(tmp_path)
    if os.environ.get("UPDATE_GOLDEN"):
        text = rewritten(rewritten(text, page), page)  # again: graphs name lines of the page
        (ROOT / page).write_text(text)
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


def test_a_page_is_written_anew():
    first, second = "print(1)", "print('k_0123abcd')"
    page = f"```python\n{first}\n```\n\nwords\n\n```python\n{second}\n```\n```text\n2\n```\nend\n"
    new = rewritten(page, "page.md")
    assert "```\n\n```text\n1\n```\n\nwords" in new
    assert "```text\nk_...\n```\nend\n" in new and "\n2\n" not in new
    assert run_page(new, "page.md") == 2
