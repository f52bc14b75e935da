"""NCCL's part of `tracejit.distributed`, with a stand-in for devices, streams and NCCL."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None or importlib.util.find_spec("mpi4py") is None,
    reason="needs the extras 'cuda' and 'distributed'")  # fmt: skip


def launched(size, *arguments, **variables):
    """Run a program of nccl_programs.py in so many processes."""
    return subprocess.run(
        [sys.executable, "-m", "tracejit.distributed.run", "--standalone", "--nproc-per-node",
         str(size), "-m", "tests.cuda.nccl_programs", *arguments],
        cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200,
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1", **variables},
    )  # fmt: skip


PROGRAMS = ["first_message", "reductions", "moves", "messages", "works", "refusals", "ddp",
            "captured"]  # fmt: skip


@pytest.mark.timeout(300)
def test_two_processes():
    found = launched(2, ",".join(PROGRAMS))
    assert found.returncode == 0, found.stdout
    assert [found.stdout.count(f"{name} done") for name in PROGRAMS] == [2] * 8, found.stdout


@pytest.mark.full
@pytest.mark.timeout(300)
def test_four_processes():
    found = launched(4, ",".join(PROGRAMS))
    assert found.returncode == 0, found.stdout


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", ["never", "unhandled system error"])
def test_an_operation_that_does_not_end_is_aborted(fault):
    found = launched(2, "faults", fault)
    assert found.returncode == 0 and found.stdout.count("done") == 2, found.stdout


def test_two_processes_on_one_gpu_are_told():
    found = launched(2, "works", GPU_OF_RANK="7")
    assert found.returncode != 0
    assert "Duplicate GPU detected: rank 1 and rank 0 both on CUDA device 7" in found.stdout


def test_the_stand_in_notices_calls_that_differ():
    found = launched(2, "different")
    assert found.returncode != 0 and "('all_reduce', 2, 7, 0)" in found.stdout, found.stdout
