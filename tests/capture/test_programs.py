"""Every program shows the same plainly and captured, under script and trace, in every mode (C1,
C2)."""

from __future__ import annotations

import collections
import functools

import pytest

import tracejit as tj
from tests.capture.program_table import ROWS, SUBJECTS, Counting, documented
from tests.capture.shown import assert_same, plain, seen
from tests.shares import share
from tracejit import config

PAGE = {name: told for name, *told in documented()}
# Programs that show something else when captured, and the ways in which they do. Each is a defect
# to mend, and goes then.
WRONG: dict[str, tuple[str, str]] = {}


# Of the programs one in so many runs in `make test`; all of them in `make test-full`.
SHARES = {"graph": 3, "compiled": 16, "python": 32, "trace": 12}


def rows(*ways):
    """Every program in each way; those known to be wrong must fail."""
    for row in ROWS:
        where, reason = WRONG.get(row.name, ("", ""))
        for way in ways:
            marks = [pytest.mark.xfail(reason=reason, strict=True)] if way in where.split() else []
            marks += share(f"{row.name}-{way}", SHARES[way])
            yield pytest.param(row, way, id=f"{row.name}-{way}", marks=marks)


def shown(row, jit, mode="graph"):
    tj.manual_seed(0)
    with config.override(mode=mode):
        return seen(row.run(jit))


@functools.cache
def expected(row):
    return shown(row, plain)


@pytest.mark.parametrize(("row", "mode"), [*rows("graph")])
def test_scripted_program_shows_what_the_plain_one_does(row, mode):
    counting = Counting(tj.script)
    assert_same(shown(row, counting, mode), expected(row))
    assert [row.subject, *counting.figures()] == PAGE.get(row.name), (
        "docs/programs.md differs: python -m tests.capture.program_table"
    )


@pytest.mark.parametrize(("row", "mode"), [*rows("python", "compiled")])
def test_kernels_show_what_the_plain_program_does(row, mode):
    assert_same(shown(row, tj.script, mode), expected(row))


@pytest.mark.parametrize(("row", "way"), [*rows("trace")])
def test_traced_program_shows_what_the_plain_one_does(row, way):
    assert_same(shown(row, tj.trace), expected(row))


# Segments of so many nodes end in the midst of all that a program does.
LIMITS = (2, 5, 9, 4, 16, 7)


@pytest.mark.parametrize(("row", "most"), [
    pytest.param(row, LIMITS[k % len(LIMITS)], id=row.name, marks=share(f"{row.name}-short", 9))
    for k, row in enumerate(ROWS)])  # fmt: skip
def test_segments_may_end_anywhere(row, most):
    with config.override(max_segment_nodes=most):
        assert_same(shown(row, tj.script), expected(row))


@pytest.mark.parametrize("most", LIMITS)
def test_hooks_of_a_later_backward_end_no_segment(most):
    """Their nodes belong to the backward that is made after the call: a segment that ended there
    took the inputs along."""
    (row,) = (row for row in ROWS if row.name == "code_that_runs_in_a_later_backward")
    with config.override(max_segment_nodes=most):
        assert_same(shown(row, tj.script), expected(row))


def test_there_are_enough_programs_of_every_subject():
    counts = collections.Counter(row.subject for row in ROWS)
    print(len(ROWS), dict(counts))
    assert len(ROWS) >= 300 and min(counts[s] for s in SUBJECTS) >= 7
    assert min(n for s, n in counts.items() if s not in ("found", "aliasing")) >= 18, counts


def test_the_page_lists_every_program_once():
    names = [row.name for row in ROWS]
    assert [n for n, k in collections.Counter(names).items() if k > 1] == []
    assert [name for name, *_ in documented()] == names


class Liar:
    """A decorator that breaks one thing a program's caller can see."""

    def __init__(self, lie):
        self.lie = lie

    def __call__(self, function):
        return lambda *args: self.lie(function(*args))


LIES = {
    "values": lambda x: x * 1.001,
    "dtype": lambda x: x.double(),
    "history": lambda x: x.detach(),
    "strides": lambda x: x.t().contiguous().t(),
    "identity": lambda x: x * 1,
    "type": lambda x: [x],
}


@pytest.mark.parametrize("name", LIES)
def test_what_is_shown_tells_a_lie(name):
    x = (tj.arange(6.0).view(2, 3) + 1).requires_grad_()

    def program(jit):
        f = jit(lambda x: x)
        return [f(x), x, f(x)]

    truth = seen(program(plain))
    assert_same(seen(program(plain)), truth)
    with pytest.raises(AssertionError):
        assert_same(seen(program(Liar(LIES[name]))), truth)


def test_what_is_shown_tells_shared_memory():
    x = tj.arange(6.0)
    apart, shared = seen([x[:3], x[3:]]), seen([x[:4], x[3:]])
    assert (apart[2], shared[2]) == ([], [[0, 1]])
