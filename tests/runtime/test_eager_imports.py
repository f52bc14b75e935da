"""Native functions of small eager ops are made in fresh processes, whatever op comes first."""

import subprocess
import sys

import pytest

from tracejit.core.ops.direct_calls import CALLS

OPS = {
    "sum": "x + x", "by a number": "x * 1", "product": "x @ x", "with a vector": "x @ x[0]",
    "of vectors": "tj.dot(x[0], x[1])", "softmax": "x.softmax(-1)", "view": "x.view(-1)",
    "row": "x[0]", "total": "x.sum()",
}  # fmt: skip
PROGRAM = """
import sys
import tracejit as tj

x = tj.ones(4, 4)
expected = ({op}).tolist()
for _ in range({calls}):
    found = {op}
assert found.tolist() == expected
print("tracejit.jit.passes.simplify" in sys.modules)
"""


@pytest.mark.parametrize("name", list(OPS))
def test_an_op_runs_often_in_a_fresh_process(name):
    program = PROGRAM.format(op=OPS[name], calls=CALLS + 20)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    if name in ("sum", "by a number", "view", "row", "total"):
        assert run.stdout.split() == ["False"], "a small op brings in the whole compiler"
