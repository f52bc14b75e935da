"""Loops of `programs_carried.py` are one node of the graph, not their iterations one by one."""

from __future__ import annotations

import pytest

import tracejit as tj
from tests.capture import programs_carried
from tests.capture.program_table import Counting

# Programs that read the row of the last iteration, a view of the caller's tensor.
UNROLLED = {"read_behind_the_loop", "read_by_a_closure", "read_after_an_error"}


@pytest.mark.parametrize("program", programs_carried.PROGRAMS, ids=lambda p: p.__name__)
def test_no_loop_is_unrolled(program):
    counting = Counting(lambda f, **options: tj.script(f, mode="graph", **options))
    program(counting)
    unrolled = [loop for f in counting.made for loop in f.report().unrolled]
    assert bool(unrolled) is (program.__name__ in UNROLLED), unrolled


def test_one_program_serves_all_lengths():
    @tj.script(mode="graph")
    def f(x):
        total = 0.0
        for row in x:
            total = total + (row * row).sum()
        return total

    for n in (20, 33, 2, 5000, 7):
        x = tj.ones(n, 3, requires_grad=True)
        y = f(x)
        y.backward()
        assert y.item() == 3 * n and x.grad.tolist() == [[2.0] * 3] * n
    assert f.report().compiles == 1
    assert f.graphs["captured"].count("for_loop(") == 1
