"""The tests of `simulated/`, in a process where numba's CUDA target is its simulator."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="needs the extra 'cuda'"
)


# As many processes as the tests are dealt to, so that none is left running alone.
PARTS = 3


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_programs_in_the_simulator(request, part):
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider",
         "-m", request.config.getoption("markexpr"), "tests/cuda/simulated"],
        cwd=ROOT, env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PART": f"{part}/{PARTS}"},
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout
    counted = re.search(r"(\d+) passed", found.stdout)
    assert counted is not None and int(counted[1]) > 100, found.stdout
    assert "skipped" not in found.stdout.splitlines()[-1], found.stdout
