"""Each artifact of `TRACEJIT_LOGS` is written as its help says, and nothing is without it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tracejit.config import ARTIFACTS

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = '''
import sys
import tracejit as tj

w = tj.ones(3, 4, requires_grad=True)

@tj.script
def score(x):
    hidden = tj.tanh(x @ w)
    p = tj.softmax(hidden, dim=1)
    return (p * hidden).sum(), p.amax(dim=0)

score(tj.ones(2, 3))[0].backward()
score(tj.ones(5, 3))
assert score.report().compiles == 1, score.report()
score(tj.ones(5, 3).requires_grad_())

@tj.script
def broken(x):
    if x.sum().item() > 0:
        return x.int()
    return x

broken(tj.ones(2))
print("tracejit.jit.lowering.apart" in sys.modules)
'''
# What the help promises, in the words of this program.
SHOWN = {
    "guards": [r"score: x: float32, 2 dimensions, requires_grad=False", r"score: sizes: .* == ",
               r"score: failed: x: .* requires_grad=False -> .* requires_grad=True"],
    "recompiles": [r"score: a new binding of the same program: x\.shape\[0\] = 5, ",
                   r"score: x: .*requires_grad=False -> .*requires_grad=True"],
    "graph": [r"graph score\($", r"graph score_backward\($", r"softmax\(%1, dim=1\)",
              r"# program.py:10 in score: p = tj.softmax"],
    "joint": [r"graph score_joint\($", r"float32\[s0_0, s1_1\] = matmul",
              r"\"tangent\"", r"return %\d+, %\d+, %\d+$"],
    "passes": [r"score: dce: 1\d -> 1\d nodes", r"score_backward: open: \d+ -> \d+ nodes"],
    "fusion": [r"\d: matmul: matmul$", r"\d: .*: .*exp, sum, div",
               r"apart: `matmul` \(program.py:9: hidden = tj.tanh\(x @ w\)\) is stored for .*: a "
               r"product is a call of its own",
               r"apart: .*: a reduction over leading dimensions has loops of its own"],
    "kernels": [r"score: matmul_float32: matmul$", r"def \w+\(buffers, operands, sizes, scratch",
                r"# .*program.py:10  p = tj.softmax"],
    "memory": [r"score: 1 temporaries of 4 bytes share 64; peak \d+ bytes",
               r"input 0 x: float32, 24 bytes, kernels 0 to 0",
               r"temporary of .* at program.py:\d+: float32, 4 bytes at 0, kernels \d to \d"],
    "breaks": [r"broken: .*program.py:20  if x.sum\(\).item\(\) > 0:", r"calls item\(\)"],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    (folder / "program.py").write_text(PROGRAM)

    def run(**variables):
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "TRACEJIT_MODE": "compiled", **variables}
        return subprocess.run([sys.executable, "program.py"], cwd=folder, env=environ,
                              capture_output=True, text=True, timeout=120)

    return run


def test_every_artifact_is_tested():
    assert {*SHOWN} == {*ARTIFACTS}


@pytest.mark.parametrize("artifact", ARTIFACTS)
def test_an_artifact_is_written_as_its_help_says(run, artifact):
    done = run(TRACEJIT_LOGS=artifact)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert [line for line in lines if not line.startswith(f"[tracejit {artifact}] ")] == []
    for pattern in SHOWN[artifact]:
        assert any(re.search(pattern, line) for line in lines), (pattern, done.stderr)


def test_nothing_is_made_or_written_unasked(run):
    done = run()
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "False\n")


@pytest.mark.parametrize(("variable", "text", "known"), [
    ("TRACEJIT_LOGS", "kernel", "guards, recompiles, graph, joint, passes, fusion"),
    ("TRACEJIT_PRINT_AFTER", "fuse",
     "open, sizes, fold, branches, simplify, cse, loops, products, sums, dce, all"),
])
def test_an_unknown_name_is_an_error_that_lists_the_known(run, variable, text, known):
    done = run(**{variable: text})
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ValueError: {variable}: expected names among {known}")
    assert len(done.stderr.strip().splitlines()) <= 6  # the user's line, and ours that raises
    assert last.endswith(f"; got '{text}'")


def test_a_graph_is_printed_after_the_passes_asked_for(run):
    done = run(TRACEJIT_PRINT_AFTER="fold,dce")
    titles = [line for line in done.stderr.splitlines() if line.startswith("# after ")]
    assert done.returncode == 0 and {*titles} == {"# after fold", "# after dce"}
