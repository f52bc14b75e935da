"""The bench's loops give equal results, captured and plain, at tiny sizes; nothing is timed."""

import argparse
import json
import sys

import numpy as np
import pytest

import tracejit
from bench import loops
from bench.loop_program import difference
from bench.loop_worker import PROGRAMS
from bench.report import Report, joined, mean, table, write
from tests.shares import share


def plain(step):
    return step


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=share(name, 2)) for name in PROGRAMS])
def test_captured_and_plain_results_are_equal(name):
    program = PROGRAMS[name]
    found = program.torch_call(tracejit, tracejit.script, program.tiny)
    expected = program.torch_call(tracejit, plain, program.tiny)()
    for _ in range(2):
        assert difference(found(), expected, program) <= program.tolerance


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    program = PROGRAMS[name]
    found = program.torch_call(tracejit, plain, program.tiny)()
    expected = program.torch_call(torch, plain, program.tiny)()
    assert difference(found, expected, program) <= program.tolerance


def test_a_difference_is_seen():
    program = PROGRAMS["Mandelbrot, float64"]
    whole, other = np.ones(10_000), np.ones(10_000)
    other[0] = 2.0
    assert difference(whole, other, program) == 0.0  # a last bit may decide one in a thousand
    other[:20] = 2.0
    assert difference(whole, other, program) > 0.1
    assert difference([whole], [whole, whole], program) == np.inf
    assert difference(whole, whole * np.nan, program) == np.inf


def options(**given):
    known = {"tiny": True, "rounds": 1, "limit": 100.0, "growth": False}
    return argparse.Namespace(**(known | given))


def test_a_contender_in_a_process_of_its_own():
    program = PROGRAMS["while i < n of two operations"]
    cells = loops.measure(program, {"tracejit": sys.executable, "tracejit eager": sys.executable},
                          options())
    assert all(cell["s"] > 0 and cell["first"] > 0 for cell in cells.values())
    assert cells["tracejit eager"]["difference"] <= program.tolerance
    report = Report("loops", "Loops", ["tracejit"], rows={program.name: cells})
    assert program.name in table(report) and loops.wrong(report) == []
    cells["tracejit"]["difference"] = 1.0
    assert "differs" in loops.wrong(report)[0]
    json.dumps(cells)


def test_a_contender_that_takes_too_long_is_out():
    program = PROGRAMS["while i < n of two operations"]
    cells = loops.measure(program, {"tracejit": sys.executable}, options(limit=0.01))
    assert cells["tracejit"] == {"error": "over 0 s"}


def test_a_contender_that_fails_is_named():
    program = PROGRAMS["while i < n of two operations"]
    cells = loops.measure(program, {"tracejit": "/bin/false"}, options())
    report = Report("loops", "Loops", ["tracejit"], rows={program.name: cells})
    assert loops.wrong(report) == [f"{program.name}, tracejit: failed: ended"]


def test_means_leave_out_what_is_no_number():
    assert mean([2.0, 8.0, float("nan")]) == pytest.approx(4.0)


def test_runs_of_parts_become_one_report(tmp_path):
    parts = [Report("loops", "Loops", ["tracejit", "jax.jit"],
                    rows={name: {"tracejit": {"s": 1.0}, "jax.jit": {"s": ratio}}})
             for name, ratio in (("HMM forward", 2.0), ("Lorenz, RK4", 0.5))]
    (whole,) = joined(parts)
    assert list(whole.rows) == ["HMM forward", "Lorenz, RK4"]
    assert whole.notes == ["jax.jit takes 1.00 times tracejit's time (geometric mean of 2)",
                           "behind jax.jit: Lorenz, RK4"]
    made = write(whole, tmp_path)
    assert [path.suffix for path in made][:2] == [".json", ".md"]
    assert Report(**json.loads(made[0].read_text())) == whole
    assert "| HMM forward" in made[1].read_text()
