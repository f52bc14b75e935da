"""Breaks, long loops and sizes in reports: at the user's line, with the cause below."""

from __future__ import annotations

import copy
import os
import weakref
from linecache import getline

import pytest

import tracejit as tj
from tracejit.jit.capture.breaks import GraphBreak, Inside, add_break_to
from tracejit.jit.ir.graph import Location


def text_of(found):
    """Return the user's text of a record's line."""
    return getline(found.location.file, found.location.line).strip()


def captured(f, *args):
    made = tj.script(f)
    made(*args)
    return made.report()


# -- libraries -------------------------------------------------------------------------------------


def test_what_a_library_does_is_below_the_users_line():
    def f(x):
        copy.deepcopy([object(), object()])
        return x * 2

    (found,) = captured(f, tj.ones(2)).breaks
    assert text_of(found) == "copy.deepcopy([object(), object()])"
    assert {os.path.basename(within.location.file) for within in found.inside} == {"copy.py"}
    lines = str(found).splitlines()
    assert lines[2].startswith("      in ") and "copy.py:" in lines[2]
    assert lines[-1].startswith("    hint: ")


def test_one_line_has_one_break_whatever_its_library_does():
    def f(x):
        seen = weakref.WeakSet(), copy.deepcopy([object(), x.tolist()])
        return x * len(seen)

    breaks = captured(f, tj.ones(2)).breaks
    folded = [found for found in breaks if found.inside]
    assert len(folded) <= 1
    assert {text_of(found) for found in breaks} == {
        "seen = weakref.WeakSet(), copy.deepcopy([object(), x.tolist()])"}


def test_records_of_a_line_join():
    line, other = Location("a.py", 3, "f()", "f"), Location("a.py", 4, "g()", "f")
    one, two = Location(os.__file__, 1, "", ""), Location(os.__file__, 2, "", "")
    breaks: list[GraphBreak] = []
    add_break_to(breaks, GraphBreak("first", line, "", (Inside(one, "first"),)))
    add_break_to(breaks, GraphBreak("second", line, "", (Inside(two, "second"),)))
    add_break_to(breaks, GraphBreak("second", line, "", (Inside(two, "second"),)))
    add_break_to(breaks, GraphBreak("third", line))
    add_break_to(breaks, GraphBreak("second", other, "", (Inside(two, "second"),)))
    assert [(found.reason, len(found.inside)) for found in breaks] == [
        ("first", 2), ("third", 0), ("second", 1)]
    assert str(breaks[0]).splitlines()[1:] == [
        "    first", f"      in {one}  ", f"      in {two}  : second"]


def test_a_captured_function_of_a_library_has_its_own_lines():
    made = tj.script(copy.deepcopy)
    made([tj.ones(2)])
    (found, *_) = made.report().breaks
    assert os.path.basename(found.file) == "copy.py"


# -- branches --------------------------------------------------------------------------------------


def test_a_refused_branch_is_one_record_with_the_cause_inside():
    def f(x):
        if x.sum() > 0:
            y = x + 1
            print(y)
        return x

    (found,) = captured(f, tj.ones(2)).breaks
    assert text_of(found) == "if x.sum() > 0:"
    (cause,) = found.inside
    assert cause.location.text == "print(y)"
    assert found.reason == f"the branch runs as Python: {cause.reason}"
    assert str(found).count(cause.reason) == 1 and found.hint


def test_a_refused_nest_names_the_cause_and_no_prefix_twice():
    def f(x):
        if x.sum() > 0:
            if x.sum() > 1:
                if x.sum() > 2:
                    print(x)
        return x

    breaks = captured(f, tj.ones(3)).breaks
    assert [text_of(found) for found in breaks] == [
        "if x.sum() > 0:", "if x.sum() > 1:", "if x.sum() > 2:"]
    assert {found.reason.count("runs as Python") for found in breaks} == {1}
    assert {within.location.text for found in breaks for within in found.inside} == {"print(x)"}


def test_a_hint_within_a_branch_stays():
    def f(x):
        return x[x > 1].sum() if x.sum() > 0 else x.sum()

    first, *_ = captured(f, tj.ones(2)).breaks
    assert "masked_fill" in first.hint


# -- calls that raise ------------------------------------------------------------------------------


def test_a_call_that_raises_reports_its_breaks():
    def f(x):
        k = x.tolist()
        raise ValueError(len(k))

    made = tj.script(f)
    with pytest.raises(ValueError):
        made(tj.ones(2))
    (found,) = made.report().breaks
    assert text_of(found) == "k = x.tolist()"
    with pytest.raises(tj.CaptureError):
        full = tj.script(f, fullgraph=True)
        full(tj.ones(2))
    assert len(full.report().breaks) == 1


# -- sources that cannot be read -------------------------------------------------------------------


def test_the_source_that_cannot_be_read_is_said_first():
    names: dict = {}
    exec("def f(x):\n    return x * 2 if x.sum() > 0 else x\n", names)
    (found,) = captured(names["f"], tj.ones(2)).breaks
    assert found.reason.startswith("the source of f cannot be read: it comes from <string>")
    assert "`def` in a file" in found.hint


# -- long loops ------------------------------------------------------------------------------------


def test_long_loops_are_listed_and_are_no_breaks():
    def f(x, items, n):
        for item in items:
            x = x * item
        k = 0
        while k < n:
            x = x + 1
            k += 1
        return x

    report = captured(f, tj.ones(2), [tj.ones(2)] * 18, 16)
    assert report.breaks == []
    assert [(loop.length, loop.location.text) for loop in report.unrolled] == [
        (18, "for item in items:"), (16, "while k < n:")]
    assert "unrolled: " in str(report) and "18 iterations one by one" in str(report)


def test_short_loops_and_loops_of_the_graph_are_not_listed():
    def f(x, items):
        for item in items:
            x = x * item
        for row in x:
            x = x + row
        for _ in range(20):
            x = x * 2
        names = []
        for k in range(3):
            names.append(str(k))
        for name in names * 10:
            len(name)
        return x

    report = captured(f, tj.ones(3, 3), [tj.ones(3)] * 15)
    assert (report.breaks, report.unrolled) == ([], [])


def test_the_longest_run_of_a_loop_is_listed():
    def f(x, items):
        for item in items:
            x = x * item
        return x

    made = tj.script(f)
    for n in (17, 30, 20):
        made(tj.ones(2), [tj.ones(2)] * n)
    (loop,) = made.report().unrolled
    assert loop.length == 30


def test_loops_of_mapped_functions_have_no_graph_of_their_own():
    def long(x):
        for item in [1.0] * 20:
            x = x * item
        return x

    def f(x):
        return tj.func.vmap(long)(x)

    assert tj.script(f)(tj.ones(2, 2)).tolist() == [[1.0, 1.0], [1.0, 1.0]]


# -- sizes -----------------------------------------------------------------------------------------


def first(x):
    return x * 3 if x.shape[0] > 7 else x + 3


def second(x):

    return x * 3 if x.shape[0] > 7 else x + 3


@pytest.mark.parametrize("f", [first, second])
def test_equal_functions_have_guards_with_lines_of_their_own(f):
    made = tj.script(f)
    made(tj.ones(9))
    made(tj.ones(2))
    line = f.__code__.co_firstlineno + (2 if f is second else 1)
    guards = [guard for guard in made.report().guards if guard.startswith("sizes")]
    assert guards == [f"sizes: x.shape[0] <= 7 (test_breaks.py:{line})",
                      f"sizes: x.shape[0] > 7 (test_breaks.py:{line})"]
    (cause,) = made.report().recompiles
    assert cause.path == f"size x.shape[0] at {__file__}:{line}"
    assert cause.old == "x.shape[0] > 7"


def test_sizes_of_modules_and_numbers_have_the_users_names():
    layer = tj.nn.Linear(4, 3)

    def f(x, n):
        return layer(x).reshape(3 * x.shape[0] // n, n)

    guards = captured(f, tj.ones(2, 4), 3).guards
    sizes = " ".join(guard for guard in guards if guard.startswith("sizes"))
    assert "x.shape[1] == layer.weight.shape[1]" in sizes and "n != 0" in sizes
    assert "in0" not in sizes and "s0_" not in sizes


def test_no_recompile_says_sizes_by_name():
    made = tj.script(first)
    made(tj.ones(9))
    with tj.no_recompile(), pytest.raises(tj.jit.RecompileError, match=r"x\.shape\[0\] > 7"):
        made(tj.ones(2))
