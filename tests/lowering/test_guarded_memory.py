"""Kernels read nothing but their arrays: programs run where memory ends with them."""

import subprocess
import sys

import pytest

from tests.lowering import guarded_memory

STEP = 12
ALWAYS = (0, 60, 240)  # a fault of the past was seen in the last two
FIRST = [pytest.param(k, marks=[] if k in ALWAYS else pytest.mark.full)
         for k in range(0, 40 * STEP, STEP)]  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")
@pytest.mark.parametrize("first", FIRST)
def test_kernels_read_nothing_beyond_their_arrays(first):
    """In a process of its own, which a kernel that does ends."""
    command = [sys.executable, "-W", "error::RuntimeWarning", "-m", guarded_memory.__name__,
               str(first), str(first + STEP)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    last = done.stdout.split()[-1:]
    assert done.returncode == 0, f"seed {last}: status {done.returncode}\n{done.stderr[-2000:]}"
    assert last == [str(first + STEP - 1)]


@pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")
def test_memory_ends_where_its_page_does():
    code = ("import numpy as np, ctypes\n"
            "from tests.lowering.guarded_memory import Guarded\n"
            "memory = Guarded()\n"
            "x = memory.tensor(np.ones(3, np.float32), {})\n"
            "print(ctypes.c_float.from_address(x.data_ptr() + {}).value)\n")  # fmt: skip
    for at_end, offset, readable in ((True, 8, True), (True, 12, False), (False, -4, False)):
        done = subprocess.run([sys.executable, "-c", code.format(at_end, offset)],
                              capture_output=True, text=True)  # fmt: skip
        assert (done.returncode == 0) is readable
