"""What no memory holds is refused before anything is taken, with a RuntimeError as in PyTorch."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

import tracejit
from tracejit.core.memory.limits import OutOfMemory, must_fit

ROW = tracejit.zeros(1 << 20)
HUGE = {
    "eye": lambda: tracejit.eye(1 << 22),
    "bincount": lambda: tracejit.bincount(tracejit.tensor([1 << 45])),
    "repeat_interleave": lambda: tracejit.repeat_interleave(tracejit.tensor([1 << 45])),
    "diag": lambda: tracejit.diag(ROW),
    "one_hot": lambda: tracejit.nn.functional.one_hot(ROW.long(), 1 << 30),
    "outer": lambda: tracejit.outer(ROW, ROW),
    "combinations": lambda: tracejit.combinations(ROW),
    "cartesian_prod": lambda: tracejit.cartesian_prod(ROW, ROW),
    "tril_indices": lambda: tracejit.tril_indices(1 << 22, 1 << 22),
    "repeat": lambda: ROW.repeat(1 << 22),
    "contiguous": lambda: ROW.expand(1 << 22, 1 << 20).contiguous(),
    "kron": lambda: tracejit.kron(ROW, ROW),
    "vander": lambda: tracejit.vander(ROW, 1 << 22),
    "randperm": lambda: tracejit.randperm(1 << 45),
    "linspace": lambda: tracejit.linspace(0, 1, 1 << 45),
    "pad": lambda: tracejit.nn.functional.pad(ROW, (0, 1 << 45)),
    "zeros": lambda: tracejit.zeros(1 << 45),
}


@pytest.mark.parametrize("name", HUGE)
def test_refused_before_it_takes_anything(name):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RuntimeError, match="tried to allocate|Unable to allocate") as refused:
        HUGE[name]()
    assert isinstance(refused.value, MemoryError)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


def test_more_bytes_than_can_be_counted():
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        tracejit.eye(1 << 31)


def test_small_results_are_not_asked_about():
    must_fit(1 << 30)
    with pytest.raises(OutOfMemory, match="you tried to allocate 4611686018427387904 bytes"):
        must_fit(1 << 62)


def test_the_limit_of_the_process_counts():
    program = (
        "import resource, tracejit\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n"
        "try: tracejit.eye(1 << 15)\n"
        "except RuntimeError as error: print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                         check=True)  # fmt: skip
    assert "you tried to allocate 4294967296 bytes" in ran.stdout
