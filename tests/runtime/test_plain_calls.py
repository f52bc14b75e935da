"""Functions that break in each call: on small tensors they run plainly, and are tried again."""

from __future__ import annotations

import random

import pytest

import tracejit as tj


class Drawing:
    """Breaks while `draws`, since nobody sees what `random` does."""

    def __init__(self):
        self.draws, self.drawn = True, []

    def __call__(self, x):
        if self.draws:
            self.drawn.append(random.random())
        y = (x * 2).tanh()
        return y.sum() + len(self.drawn)


def _calls(f, count, size=4):
    return [f(tj.full((size,), k / 10)).item() for k in range(count)]


@pytest.mark.parametrize("way", [tj.script, tj.trace])
def test_a_function_that_always_breaks_runs_plainly(way):
    plain, owner = Drawing(), Drawing()
    f = way(owner.__call__)
    assert _calls(f, 150) == pytest.approx(_calls(plain, 150), rel=1e-6)
    assert len(owner.drawn) == 150
    report = f.report()
    assert (report.cache_misses, report.plain, report.cache_hits) == (6, 144, 0)
    assert "calls recorded 6, replayed 0; programs made 0, kept 0; run plainly 144" in str(report)


def test_it_is_replayed_soon_after_it_breaks_no_more():
    owner = Drawing()
    f = tj.script(owner.__call__)
    _calls(f, 20)
    owner.draws = False
    _calls(f, 64)
    assert f.report().compiles == 1
    hits = f.report().cache_hits
    _calls(f, 10)
    assert f.report().cache_hits == hits + 10


@pytest.mark.parametrize("size, mode", [(1 << 20, "compiled"), (4, "graph")])
def test_large_tensors_and_other_modes_are_recorded_each_time(size, mode):
    f = tj.script(Drawing().__call__, mode=mode)
    _calls(f, 10, size)
    assert (f.report().cache_misses, f.report().plain) == (10, 0)


def test_a_function_of_one_graph_goes_on_refusing():
    f = tj.script(Drawing().__call__, fullgraph=True)
    for _ in range(8):
        with pytest.raises(RuntimeError, match="random"):
            f(tj.ones(4))
