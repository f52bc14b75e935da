"""Tests of this folder have a CUDA device: numba's simulator, over a stand-in for CuPy.

`tests/cuda/test_simulator.py` runs them in a process of their own with NUMBA_ENABLE_CUDASIM=1; by
hand: `NUMBA_ENABLE_CUDASIM=1 python -m pytest tests/cuda/simulated`, with PART=0/3 a third.
"""

import os
import sys
from pathlib import Path
from types import ModuleType

import numpy
import pytest

if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
    source = Path(__file__).parent.parent / "numpy_as_cupy.py"
    # As CuPy, it counts as an installed package, whose own code capture does not look into.
    place = Path(numpy.__file__).parent.parent / "cupy" / source.name
    stand_in = sys.modules["numpy_as_cupy"] = ModuleType("numpy_as_cupy")
    exec(compile(source.read_text(), str(place), "exec"), stand_in.__dict__)
    stand_in.install()


def pytest_collection_modifyitems(items):
    """Keep every n-th of this folder's tests where PART is `k/n`."""
    part, _, parts = os.environ.get("PART", "0/1").partition("/")
    items[:] = items[int(part) :: int(parts)]


@pytest.fixture(autouse=True, scope="session")
def cache_directory(tmp_path_factory):
    from tracejit import config

    with config.override(cache_dir=tmp_path_factory.mktemp("cache"), verify_passes=True):
        yield


@pytest.fixture(params=["as Python", "as LLVM code"])
def launched(monkeypatch, request):
    """Counts of what ran on the device since the test began: kernels by kind, host calls by op.

    Tests with it run twice: kernels in the simulator, and what PTX is made from on the CPU.
    """
    from tests.cuda import native_grid
    from tests.cuda.launches import counted
    from tracejit.jit.runtime import cuda_kernels

    if request.param == "as LLVM code":
        monkeypatch.setattr(cuda_kernels.SimulatedKernel, "launch", native_grid.launch)
    return counted(monkeypatch, cuda_kernels.SimulatedKernel)
