"""Random loops and what they carry: samples agree. The long run:
`python -m tests.random_programs.carried --count 2000`.
"""

from __future__ import annotations

import pytest

import tracejit as tj
from tests.capture.shown import assert_same, seen
from tests.random_programs.carried import Writer, check
from tests.shares import share

SEEDS = 120


@pytest.mark.parametrize("seed", [
    pytest.param(seed, marks=share(f"carried-{seed}", 6)) for seed in range(SEEDS)])
def test_captured_loops_show_what_plain_ones_do(seed):
    check(seed)


@pytest.mark.parametrize("seed", [
    pytest.param(seed, marks=share(f"compiled-{seed}", 6)) for seed in range(500, 512)])
def test_kernels_show_what_plain_loops_do(seed):
    check(seed, "compiled")


def test_programs_write_what_the_loops_can_carry():
    texts = [Writer(seed).program() for seed in range(400)]
    for part in (".append(h)", ".append(s[0]", "s[0] = ", "d['a'] += ", "q[0][1] = ", "t = 0.0",
                 "break", "else:", "d['new'] = ", "[v * 0.5 for v in s]", "while ", "last = h",
                 "for v in "):
        assert any(part in text for text in texts), part


def test_most_loops_stay_loops():
    reports = [check(seed)[1] for seed in (1, 2, 3, 5, 8, 13)]
    assert sum(not report.unrolled and not report.breaks for report in reports) >= 3


def test_a_list_that_keeps_other_objects_is_noticed():
    kept, other = tj.ones(3), tj.ones(3)
    with pytest.raises(AssertionError):
        assert_same(seen([[kept], kept]), seen([[other], kept]))
