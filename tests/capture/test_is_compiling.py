"""`compiler.is_compiling()` is true while a call is captured, and nowhere else."""

from __future__ import annotations

import tracejit as tj
from tracejit._dynamo import is_compiling as of_dynamo
from tracejit.compiler import is_compiling, is_dynamo_compiling, is_exporting


def _answers():
    return is_compiling(), of_dynamo(), is_dynamo_compiling(), is_exporting()


def test_answers_of_captured_and_plain_calls():
    plain, captured = (False,) * 4, (True, True, True, False)
    assert _answers() == plain
    for capture in (tj.script, tj.trace):
        f = capture(lambda x: (x * 2, _answers()))
        assert [f(tj.ones(2))[1] for _ in range(3)] == [captured] * 3
        assert _answers() == plain
        assert f.report().cache_hits == 2 and not f.report().breaks
    assert tj.script(lambda x: _answers(), mode="eager")(tj.ones(1)) == plain


def test_calls_that_are_recorded_each_time_answer_as_replays_do():
    @tj.script
    def f(x):
        first = is_compiling()
        if x.sum().item() > 0 and int(x.sum()) > 1:  # which ends the segment
            x = x * 2
        return x, first, is_compiling()

    assert [f(tj.ones(2) * k)[1:] for k in (1, -1, 1)] == [(True, True)] * 3


def test_mapped_functions_are_not_captured():
    seen = []

    def g(x):
        seen.append(is_compiling())
        return x * 2

    tj.vmap(g)(tj.ones(3))
    assert seen == [False]
    f = tj.script(lambda x: tj.vmap(lambda y: y * 2 if is_compiling() else y)(x))
    assert f(tj.ones(2)).tolist() == [2.0, 2.0]


def test_an_error_leaves_no_answer_behind():
    @tj.script
    def f(x):
        raise ValueError(is_compiling())

    for _ in range(2):
        try:
            f(tj.ones(1))
        except ValueError as error:
            assert error.args == (True,)
        assert not is_compiling()


def test_what_reads_values_is_left_out():
    def can_skip(mask):
        return not is_compiling() and bool(mask.all())

    @tj.script
    def attend(x, mask):
        if can_skip(mask):
            return x @ x.T
        return (x @ x.T).masked_fill(~mask, 0.0)

    x = tj.arange(4.0).reshape(2, 2)
    for mask in (tj.eye(2).bool(), tj.ones(2, 2).bool(), tj.eye(2).bool()):
        assert attend(x, mask).tolist() == (x @ x.T).masked_fill(~mask, 0.0).tolist()
    assert attend.report().cache_hits == 2 and not attend.report().breaks
