"""What the sizes of the first call decide is listed in `docs/numerics.md`, place by place.

A `hint` within an error's words decides nothing. Any other use has a row with its reason there.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("core/ops", "jit/lowering", "jit/passes", "jit/runtime")
ROW = re.compile(r"^\| `(\w+/\w+)/(\w+)\.py` (\w+) \|", re.M)
WORDS = (ast.Raise, ast.JoinedStr)


def asks(node: ast.AST) -> bool:
    """Return True if a node is a call of `hint`, or `map(hint, ...)`."""
    if not isinstance(node, ast.Call):
        return False
    named = [node.func, *(node.args if getattr(node.func, "id", "") == "map" else ())]
    return any(getattr(x, "id", getattr(x, "attr", "")) == "hint" for x in named)


def uses(tree: ast.AST, function: str = "module") -> set[str]:
    """The functions that ask for hints outside of an error's words."""
    if isinstance(tree, WORDS):
        return set()
    if isinstance(tree, ast.FunctionDef):
        function = tree.name
    found = {function} if asks(tree) else set()
    return found.union(*(uses(child, function) for child in ast.iter_child_nodes(tree)))


def used() -> set[tuple[str, str, str]]:
    return {
        (room, path.stem, function)
        for room in ROOMS
        for path in (ROOT / "tracejit" / room).glob("*.py")
        for function in uses(ast.parse(path.read_text()))
    }


def test_every_hint_is_listed_with_what_it_decides() -> None:
    listed = set(ROW.findall((ROOT / "docs" / "numerics.md").read_text()))
    assert used() == listed and len(listed) > 20


def test_a_hint_that_decides_is_found() -> None:
    source = "def f(x):\n    if hint(x) == 1: pass\n    raise E(hint(x))\ndef g(x): map(hint, x)"
    assert uses(ast.parse(source)) == {"f", "g"}
    assert uses(ast.parse("def f(x): return f'{hint(x)}'")) == set()
