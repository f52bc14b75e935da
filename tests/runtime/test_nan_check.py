"""With `check_nans` a program stops at the first kernel that writes a NaN, and names its line."""

import numpy as np
import pytest

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
