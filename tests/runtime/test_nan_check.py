"""With `check_nans` a program stops at the first kernel that writes a NaN, and names its line."""

import numpy as np
import pytest

import tracejit
from tests.runtime.programs import ADD_ONE, chain, kernel, run
from tracejit import config
from tracejit.jit.ir.graph import Location
from tracejit.jit.runtime.executable import Executable
from tracejit.jit.runtime.nan_check import NanFound

ROOT = kernel("root", """\
    x = float32_pointer(buffers, operands[0])
    out = float32_pointer(buffers, operands[1])
    for i in range(lo, hi):
        out[i] = np.sqrt(x[i])
""")


@pytest.mark.parametrize("mode", ["compiled", "python"])
@pytest.mark.parametrize("n", [10, 1 << 17])
def test_the_first_nan_is_found_with_its_line(mode, n):
    n = n if mode == "compiled" else 10
    program = chain([ADD_ONE, ROOT, ADD_ONE], n)
    program.instructions[1].ops = ("sqrt",)
    program.instructions[1].locations = (Location("model.py", 7, "y = x.sqrt()"),)
    executable = Executable(program, mode)
    x = np.ones(n, np.float32)
    x[3] = -4
    assert np.isnan(run(executable, executable.bind({}), x)[3]), "not asked for"
    with config.override(check_nans=True):
        binding = executable.bind({})
        with pytest.raises(NanFound, match="sqrt made the first NaN, in element 3 .*model.py:7"):
            run(executable, binding, x)
        x[3] = 1
        assert np.allclose(run(executable, binding, x)[:n], np.sqrt(x + 1) + 1)
        x[5] = np.nan
        with pytest.raises(NanFound, match="read a NaN and wrote one, in element 5"):
            run(executable, binding, x)


def test_a_program_made_without_the_check_does_not_serve_a_call_with_it():
    f = tracejit.script(lambda x: x.sqrt() * 2)
    x = tracejit.tensor([-1.0])
    for _ in range(2):
        assert f(x).isnan().all()
        with config.override(check_nans=True), pytest.raises(FloatingPointError, match="sqrt"):
            f(x)
    assert f(tracejit.ones(1)).tolist() == [2]


def test_a_step_that_wrote_before_the_nan_is_blamed_for_its_own_line():
    """The update of `w` is not left half done, and no second run begins from it."""
    w = tracejit.tensor([0.0, 4.0], requires_grad=True)
    optimizer = tracejit.optim.SGD([w], lr=0.1)

    @tracejit.script
    def step(x):
        optimizer.zero_grad()
        loss = ((w * x).sqrt() * x).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    found = pytest.raises(FloatingPointError, match="made the first NaN")
    with config.override(check_nans=True), found:
        step(tracejit.tensor([0.0, 1.0]))
    assert w.tolist() == [0, 4]


def test_a_graph_that_is_asked_for_under_the_check_serves_no_call_without_it():
    f = tracejit.script(lambda x: x.sqrt() * 3)
    x = tracejit.tensor([-1.0])
    with config.override(check_nans=True):
        f.graph(tracejit.ones(1))
        with pytest.raises(FloatingPointError, match="sqrt"):
            f(x)
    assert f(x).isnan().all()
