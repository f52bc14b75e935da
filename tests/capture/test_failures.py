"""Seeded failures: a captured function fails as the plain one does, and goes on as it does (C7).

The same exception and message from the same lines of the user's, nothing of tracejit's chained to
it; the same memory, gradients, attributes, containers and generator; and the next call is right.
"""

from __future__ import annotations

import contextlib
import traceback
import warnings

import pytest

import tracejit as tj
from tests.capture import failures_of_gradients, failures_of_ops, failures_of_programs
from tests.capture.test_programs import assert_same, seen
from tests.shares import share
from tracejit import config
from tracejit.core.eager.recording import active

FILES = (failures_of_ops, failures_of_gradients, failures_of_programs)
PROGRAMS = [program for file in FILES for program in file.PROGRAMS]
USER = tuple([file.__file__ for file in FILES])
ORDERS = {"first": "bgbg", "replayed": "ggbgbbg"}


def plain(function):
    return function


def lines(error):
    """The user's lines the exception passed through, outermost first, repetitions once.

    At which line of a recursion the limit is met depends on how deep Python is already.
    """
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename in USER]
    found = [(f.name, None if isinstance(error, RecursionError) else f.lineno) for f in frames]
    return list(dict.fromkeys(found))


def chain(error):
    """The exceptions that Python prints before this one."""
    found = []
    while error is not None:
        text = str(error)
        if isinstance(error, RecursionError):  # "... in comparison", wherever the limit is met
            text = text.partition(" in ")[0].partition(" while ")[0]
        found.append((type(error), text, getattr(error, "__notes__", [])))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found


def failed(call):
    """What a failing call shows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except Exception as error:
            return [chain(error), lines(error)]
    raise AssertionError("nothing failed")


def history(program, jit, order):
    """Everything that can be seen of calls in this order: b(ad) or g(ood)."""
    tj.manual_seed(0)
    failure = program(jit)
    found = []
    for kind in order:
        found.append(failed(failure.bad) if kind == "b" else seen(failure.good()))
        found.append([seen(failure.state()), tj.get_rng_state().tolist()])
        assert active.tracer is None
    return found


def assert_passed_through(got, expected):
    """The right line comes first; the lines that led there are all shown.

    A decision or a loop may be shown once more, as the line that its body was run for.
    """
    assert got[-1] == expected[-1]
    rest = iter(got)
    assert all(line in rest for line in expected), (got, expected)


def assert_equal_histories(program, jit, order):
    expected, got = history(program, plain, order), history(program, jit, order)
    for k, (g, e) in enumerate(zip(got, expected)):
        if order[k // 2] == "b" and k % 2 == 0:
            assert_passed_through(g.pop(), e.pop())
        assert_same(g, e, f"{'state after ' if k % 2 else ''}call {k // 2} ({order[k // 2]})")


# Of the programs one in so many in quick runs.
SHARES = {"graph": 1, "python": 4, "compiled": 3}
LONG = 8  # times as few of a program that takes as many seconds
SCRIPTED = [
    pytest.param(
        program, mode, order, id=f"{program.__name__}-{mode}-{order}",
        marks=share(f"{program.__name__}-{mode}-{order}", SHARES[mode] * (
            LONG if program.__name__ == "recursion_without_end" else 1)),
    )
    for program in PROGRAMS for mode in SHARES for order in ORDERS
]  # fmt: skip


@pytest.mark.parametrize(("program", "mode", "order"), SCRIPTED)
def test_scripted_program_fails_as_the_plain_one(program, mode, order):
    with config.override(mode=mode):
        assert_equal_histories(program, tj.script, ORDERS[order])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_traced_program_fails_as_the_plain_one(program, order):
    assert_equal_histories(program, tj.trace, ORDERS[order])


def test_the_table_names_lines_that_raise():
    """The comparison sees lines: each failure's innermost one is in the table's own files."""
    for program in PROGRAMS:
        shown, where = failed(program(plain).bad)
        assert where, program.__name__
        assert program.__name__ == "recursion_without_end" or where[-1][1] > 0


def test_there_are_enough_failures():
    assert len(PROGRAMS) >= 60


def caught_by_name(x):
    try:
        if x.sum() > 0:
            raise ValueError("caught")
    except ValueError:
        return x * 3
    return x * 2


def caught_whatever_it_is(x):
    try:
        if x.sum() > 0:
            raise ValueError("caught")
    except:  # noqa: E722  (no handler's class is compared)
        return x * 3
    return x * 2


def suppressed(x):
    with contextlib.suppress(ValueError):
        if x.sum() > 0:
            raise ValueError("caught")
        return x * 2
    return x * 3


@pytest.mark.parametrize("function", [caught_by_name, caught_whatever_it_is, suppressed])
def test_what_the_function_catches_is_no_defect_of_its_program(function):
    f = tj.script(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [f(tj.tensor([value])).item() for value in (-1.0, 1.0, -2.0, 2.0)]
    assert found == [-2, 3, -4, 6]
    assert f.statistics.cache_hits == 3
