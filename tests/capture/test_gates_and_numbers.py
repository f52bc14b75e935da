"""Classes that answer calls put gates before public functions: captured numbers stay inputs."""

import inspect
import subprocess
import sys

import tracejit as tj

PROGRAM = """
import tracejit as tj
from tests.capture.test_gates_and_numbers import Other
from tests.optim.test_captured_steps import counted, optim
tj.add(tj.ones(1), Other())  # gates stand from here on
def schedule(optimizer):
    return optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=20)
_, step = counted(tj.script, 4, optim.Adam, {"lr": 0.05}, schedule)
assert step.report().compiles == 1, step.report()
"""


class Other:
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return "answered"


def test_numbers_in_tuples_are_inputs_after_a_class_answered():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=120)


def test_a_gate_keeps_the_signature():
    before = str(inspect.signature(tj.add))
    assert tj.add(tj.ones(1), Other()) == "answered"
    assert str(inspect.signature(tj.add)) == before
