"""Functions that break in each call: the faster way is taken, and capture is tried again."""

from __future__ import annotations

import random
import threading

import pytest

import tracejit as tj
from tracejit.jit.runtime import pace
from tracejit.jit.runtime.pace import CAPTURE, COEXECUTE, PLAINLY, Pace


class Drawing:
    """Breaks while `draws`, since nobody sees what `random` does."""

    def __init__(self, clock=None):
        self.draws, self.drawn, self.clock = True, [], clock

    def __call__(self, x):
        if self.draws:
            self.drawn.append(random.random())
            if self.clock is not None:
                self.clock.pass_by()
        y = (x * 2).tanh()
        return y.sum() + len(self.drawn)


class Clock:
    """Time that passes only in calls: `plainly` seconds in a plain one, `recorded` in others."""

    def __init__(self, monkeypatch, plainly, recorded):
        self.now, self.plainly, self.recorded = 0.0, plainly, recorded
        monkeypatch.setattr(pace, "clock", lambda: self.now)

    def pass_by(self):
        from tracejit.core.eager.recording import active

        self.now += self.plainly if active.tracer is None else self.recorded


def _calls(f, count, size=4):
    return [f(tj.full((size,), k / 10)).item() for k in range(count)]


def _captured(way, monkeypatch, plainly, recorded, **options):
    """A function that always breaks, and its object."""
    owner = Drawing(Clock(monkeypatch, plainly, recorded))
    return way(owner.__call__, **options), owner


@pytest.mark.parametrize("way", [tj.script, tj.trace])
def test_what_is_faster_plainly_runs_plainly(way, monkeypatch):
    plain = Drawing()
    f, owner = _captured(way, monkeypatch, 1.0, 2.0)
    assert _calls(f, 150) == pytest.approx(_calls(plain, 150), rel=1e-6)
    assert len(owner.drawn) == 150
    report = f.report()
    # Three captures and four turns; one capture more after 64 calls, and four turns.
    assert (report.cache_misses, report.plain, report.cache_hits) == (12, 138, 0)
    assert "calls recorded 12, replayed 0; programs made 0, kept 0; run plainly 138" in str(report)
    (reason,) = report.runs_plainly
    assert "a plain call takes 1e+03 ms, a co-executed one 2e+03 ms" in reason
    assert f"runs plainly: {reason}" in str(report)


def test_what_is_faster_co_executed_stays(monkeypatch):
    f, _ = _captured(tj.script, monkeypatch, 3.0, 2.0)
    _calls(f, 60)
    assert (f.report().cache_misses, f.report().plain) == (56, 4)
    assert f.report().runs_plainly == []
    assert "runs plainly" not in str(f.report())


def test_a_way_that_was_chosen_stays_unless_the_other_is_clearly_faster(monkeypatch):
    f, owner = _captured(tj.script, monkeypatch, 2.0, 2.1)
    _calls(f, 70)
    assert f.report().runs_plainly
    owner.clock.plainly = 2.4  # now the slower one, but by less than a fifth
    _calls(f, 100)
    assert f.report().runs_plainly
    owner.clock.plainly = 4.0
    _calls(f, 200)
    assert not f.report().runs_plainly


def test_captures_become_rarer():
    mine, turns = Pace(True), []
    for _ in range(5000):
        turns.append(mine.turn())
        mine.took(turns[-1], 1.0 if turns[-1] == PLAINLY else 2.0)
    at = [k for k, turn in enumerate(turns) if turn == CAPTURE]
    assert at == [0, 1, 2, 64, 193, 450, 963, 1988, 3013, 4038]
    assert turns.count(COEXECUTE) == 4 * 8


def test_the_first_call_of_each_way_compiles_and_does_not_count():
    mine = Pace(True)
    for _ in range(3):
        mine.took(mine.turn(), 9.0)
    for k in range(8):
        turn = mine.turn()
        mine.took(turn, 50.0 if turn == COEXECUTE and k == 0 else 1.0 + (turn == PLAINLY))
    assert mine.way == COEXECUTE


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


def test_other_modes_are_recorded_each_time(monkeypatch):
    f, _ = _captured(tj.script, monkeypatch, 1.0, 2.0, mode="graph")
    _calls(f, 10)
    assert (f.report().cache_misses, f.report().plain) == (10, 0)


def test_a_function_of_one_graph_goes_on_refusing():
    f = tj.script(Drawing().__call__, fullgraph=True)
    for _ in range(8):
        with pytest.raises(RuntimeError, match="random"):
            f(tj.ones(4))


def test_generators_draw_the_same_numbers_whichever_way_a_call_runs(monkeypatch):
    clock = Clock(monkeypatch, 1.0, 2.0)

    def noisy(x):
        clock.pass_by()
        y = x + tj.rand(4)
        if y.tolist()[0] > 0.5:
            y = y * tj.randn(4)
        return y

    f = tj.script(noisy)
    drawn = []
    for function in (noisy, f):
        tj.manual_seed(3)
        drawn.append([function(tj.zeros(4)).tolist() for _ in range(30)])
    assert drawn[0] == [pytest.approx(row, rel=1e-6) for row in drawn[1]]
    assert f.report().plain > 15


def test_threads_run_plainly_at_the_same_time(monkeypatch):
    inside = threading.Barrier(2, timeout=20)
    clock = Clock(monkeypatch, 1.0, 2.0)
    meet = []

    def waits(x):
        clock.pass_by()
        if meet:
            inside.wait()
        return x + random.random()

    f = tj.script(waits)
    for _ in range(12):
        f(tj.ones(2))
    assert f.report().runs_plainly
    meet.append(True)
    threads = [threading.Thread(target=f, args=(tj.ones(2),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not inside.broken
