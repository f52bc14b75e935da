"""An op and a pass are added in the places that CONTRIBUTING.md names, and in no other."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs/adding_an_op.md").read_text()
RECORD, ROW = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[:2]


@pytest.fixture
def copy(tmp_path):
    """A tree that may be changed: the package and its tests."""
    left_out = shutil.ignore_patterns("__pycache__", ".hypothesis")
    for name in ("tracejit", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=left_out)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def append(path, text):
    path.write_text(path.read_text() + text)


def ran(tree, *arguments):
    """Run pytest in the tree; return (tests that passed, its output)."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments], cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)}, capture_output=True, text=True)  # fmt: skip
    passed = re.search(r"(\d+) passed", done.stdout)
    return (int(passed[1]) if passed and done.returncode == 0 else 0), done.stdout


@pytest.mark.full
def test_an_op_is_added_by_a_record_a_name_and_a_row(copy):
    record, row = (text.replace("softsign", "gentle") for text in (RECORD, ROW))
    family = copy / "tracejit/core/ops/activations.py"
    append(family, f"\n{record}")
    append(copy / "tracejit/__init__.py", "from tracejit.core.ops.activations import gentle\n")
    formula = "torch=lambda x: x / (1 + abs(x))"  # PyTorch has no such function
    append(copy / "tests/ops/rows_pointwise.py",
           f"ROWS.append({row.strip().removesuffix(')')}, {formula}))\n")
    selected = ("tests/ops/test_opinfo.py", "-k", "gentle", "-m", "not gpu")
    passed, text = ran(copy, *selected)
    assert passed > 10, text[-2000:]
    family.write_text(family.read_text().replace(
        "input=lambda grad, input: grad / (1 + abs(input)) ** 2", "input=lambda grad, input: grad"))
    passed, text = ran(copy, *selected)
    assert not passed and "gradients" in text, text[-2000:]


PASS = '''"""A minus of a minus is left out: `v0 = neg(x); v1 = neg(v0)` becomes `x`."""

from tracejit.jit.ir.graph import Graph
from tracejit.jit.passes.rewrite import rewrite


def double_negation(graph: Graph, numerics: str = "fast") -> Graph:
    """Read what was negated twice in place of the result."""
    return rewrite(graph, "negations", lambda op: [_inner] if op.name == "neg" else [])


def _inner(graph, node):
    made = node.inputs[0].node
    return made.inputs[0] if made is not None and made.op.name == "neg" else None
'''


@pytest.mark.full
def test_a_pass_is_added_by_a_file_and_its_name_in_the_list(copy):
    file = copy / "tracejit/jit/passes/double_negation.py"
    file.write_text(PASS)
    pipeline = copy / "tracejit/jit/passes/pipeline.py"
    source = pipeline.read_text()
    for before, new in (
        ("from tracejit.jit.passes.dce import dce\n",
         "from tracejit.jit.passes.double_negation import double_negation\n"),
        ('    ("open", open_composites),', '    ("negations", double_negation),\n'),
    ):  # fmt: skip
        assert before in source
        source = source.replace(before, new + before)
    pipeline.write_text(source)
    selected = ("tests/passes/test_random_graphs.py", "-m", "", "-k", "keeps_results and negations")
    passed, text = ran(copy, *selected)
    assert passed == 1, text[-2000:]
    wrong = PASS[: PASS.index("    made =")] + "    return node.inputs[0]\n"
    file.write_text(wrong)
    passed, text = ran(copy, *selected)
    assert not passed and "negations" in text, text[-2000:]
