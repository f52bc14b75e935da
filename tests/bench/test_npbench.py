"""NPBench's kernels give NumPy's results, captured, at tiny sizes; nothing is timed."""

import numpy as np
import pytest

from bench import npbench
from bench.npbench import KERNELS, Run, difference, function_of
from tests.shares import share

# Kernels that Python finishes, or whose loops are unrolled; docs/limits.md says what cannot be.
NOT_CAPTURED: set[str] = set()


def first(kernel, contender):
    run, cell, numbers = npbench._first(kernel, contender, tiny=True, limit=200.0)
    return cell, numbers


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=share(name, 4)) for name in KERNELS])
def test_results_are_numpys(name):
    kernel = KERNELS[name]
    _, expected = first(kernel, "numpy")
    cell, found = first(kernel, "tracejit")
    assert difference(found, expected) <= kernel.tolerance
    assert cell["captured"] == (name not in NOT_CAPTURED), cell["why"]


@pytest.mark.parametrize("name", ["seidel_2d", "adi", "ludcmp", "softmax"])
def test_plain_tensors_give_numpys_results(name):
    kernel = KERNELS[name]
    _, expected = first(kernel, "numpy")
    run = Run(kernel.for_tensors(), kernel.arrays(kernel.tiny), tensors=True)
    assert difference(run.numbers(run.once()[1]), expected) <= kernel.tolerance


def test_every_call_starts_from_the_same_arrays():
    kernel = KERNELS["gemver"]
    run = Run(function_of(kernel, "numpy"), kernel.arrays(kernel.tiny), tensors=False)
    once = run.numbers(run.once()[1])
    assert difference(run.numbers(run.once()[1]), once) == 0.0


def test_a_difference_is_seen():
    one = [np.ones(3), np.zeros(2)]
    assert difference([np.ones(3), np.full(2, 1e-3)], one) == pytest.approx(1e-3)
    assert difference(one[:1], one) == np.inf
    assert difference([np.ones(3), np.full(2, np.nan)], one) == np.inf


def test_a_first_call_that_takes_too_long_is_out():
    def slow(*_):
        while True:
            pass

    kernel = npbench.Kernel("slow", {}, {}, lambda s: [], slow)
    cells = npbench.measure(kernel, 1, True, 0.05, ("numpy",))
    assert cells == {"numpy": {"error": "over 0 s"}}
