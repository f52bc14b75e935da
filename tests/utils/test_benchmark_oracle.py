"""Measurements, and what they say, as in PyTorch."""

import pytest

import tracejit
from tracejit.utils import benchmark

torch = pytest.importorskip("torch")

import torch.utils.benchmark as theirs  # noqa: E402

pytestmark = pytest.mark.oracle

TIMES = {
    "one": [0.5], "three": [1e-3, 2e-3, 4e-3], "calm": [1e-3, 1.01e-3, 1.02e-3, 1.01e-3, 1e-3],
    "restless": [1e-3, 1.1e-3, 1.05e-3, 1.2e-3, 1.3e-3], "long": [3.0, 3.0, 3.1, 3.2],
}
SPECS = {
    "plain": ("f()", "pass"), "set up": ("f()", "x = 1"), "lines": ("f()\ng()", "a\nb"),
    "labelled": ("f()", "pass", "", "sums", "of rows", "here"),
    "threads": ("f()", "pass", "", "sums", None, "here", "env", 2),
}


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("times", TIMES)
def test_measurements(times, spec):
    seen = []
    for library in (benchmark, theirs):
        m = library.Measurement(10, TIMES[times], library.TaskSpec(*SPECS[spec]))
        text = repr(m).split("\n", 1)[1]
        seen.append((text, pytest.approx(m.median), pytest.approx(m.mean), pytest.approx(m.iqr),
                     m.significant_figures, m.has_warnings, m.meets_confidence(), m.title, m.env,
                     m.as_row_name, m.times, m.stmt, m.num_threads, m.description,
                     len(library.Measurement.merge([m, m, m])[0].times)))
    assert seen[0] == seen[1]


def test_numbers_in_tables():
    for call in (lambda b: [b.select_unit(t) for t in (1e-10, 1e-9, 2e-6, 3e-3, 4.0, 5e3)],
                 lambda b: pytest.approx(
                     [b.trim_sigfig(x, n) for x in (1234.5, 0.0123, 7) for n in (1, 2, 3)]),
                 lambda b: [b.unit_to_english(u) for u in ("ns", "us", "ms", "s")],
                 lambda b: b.ordered_unique([3, 1, 3])):
        found, expected = call(benchmark), call(theirs)
        assert getattr(found, "expected", found) == expected


def test_timers():
    seen = []
    x = tracejit.ones(3)
    timer = benchmark.Timer("y = x + 1", globals={"x": x}, label="add", description="here",
                            num_threads=2)
    before = tracejit.get_num_threads()
    m = timer.blocked_autorange(callback=lambda n, t: seen.append((n, t)), min_run_time=0.01)
    assert len(seen) == len(m.times) and {n for n, _ in seen} == {m.number_per_run}
    assert sum(m.raw_times) > 0.01 and tracejit.get_num_threads() == before
    assert timer.timeit(7).number_per_run == 7
    found = timer.adaptive_autorange(threshold=1e9, min_run_time=0.001, max_run_time=5)
    assert len(found.times) >= 4
    stopped = timer.adaptive_autorange(threshold=-1, max_run_time=0.05)
    assert sum(stopped.raw_times) > 0.05
    runs = []
    benchmark.Timer("runs.append(k)", setup="k = 5", globals={"runs": runs}).timeit(3)
    assert runs == [5] * 5  # two to warm up


@pytest.mark.parametrize("make", [
    lambda b: b.Timer(3), lambda b: b.Timer("f()", global_setup="x"),
    lambda b: b.Timer("f()").repeat(), lambda b: b.Timer("f()").autorange(),
    lambda b: b.Compare([3])])  # fmt: skip
def test_refused(make):
    with pytest.raises((ValueError, NotImplementedError)) as expected:
        make(theirs)
    with pytest.raises(expected.type) as found:
        make(benchmark)
    assert str(found.value) == str(expected.value)


def test_tables():
    made = [benchmark.Measurement(1, [t], benchmark.TaskSpec(
        "f()", "pass", label="sums", sub_label=row, description=column, num_threads=threads))
        for t, row, column, threads in ((4e-3, "small", "old", 1), (2e-3, "small", "new", 1),
                                        (9e-3, "large", "new", 1), (1e-3, "small", "new", 2))]
    table = benchmark.Compare(made)
    lines = str(table).splitlines()
    assert lines[1].split() == ["|", "old", "|", "new"]
    assert lines[3].split() == ["small", "|", "4.0", "|", "2.0"]
    assert lines[4].split() == ["large", "|", "|", "9.0"]
    assert lines[5].startswith("2 threads: ---") and lines[6].split()[-1] == "1.0"
    assert "Times are in milliseconds (ms)." in lines
    table.colorize()
    assert "\033[92m" in str(table) and "\033[31m" not in str(table).splitlines()[3]
    restless = benchmark.Measurement(1, TIMES["three"], benchmark.TaskSpec("f()", "pass"))
    other = benchmark.Compare([restless])
    other.highlight_warnings()
    other.trim_significant_figures()
    assert "2 (! 75%)" in str(other)
