# ruff: noqa: UP031
"""Numbers that change reach C code as numbers, under `script` and under `trace`."""

from __future__ import annotations

import math
import time
from collections import deque

import pytest

import tracejit as tj
from tests.capture.number_uses import USES
from tests.shares import share

JITS = {"script": tj.script, "trace": tj.trace}


def shown(jit, use):
    state = {"n": 1, "v": 0.5}

    @jit
    def f(x):
        state["n"] += 1
        state["v"] += 1.25
        return x * state["n"], use(state["n"], state["v"])

    return [repr(f(tj.ones(1))) for _ in range(3)]


@pytest.mark.parametrize(("way", "use"), [
    pytest.param(way, use, marks=share(f"{use}-{way}-number", 9)) for use in USES for way in JITS])
def test_what_c_code_makes_of_a_number_that_changes(way, use):
    assert shown(JITS[way], USES[use]) == shown(lambda f: f, USES[use])


def in_the_function_itself(state, x):
    state["n"] += 1
    state["v"] += 0.25
    return x * state["n"], "%*d" % (state["n"], 5), math.ldexp(state["v"], state["n"])


def in_a_loop(state, x):
    kept = []
    for k in range(3):
        state["n"] += k
        kept.append("%.*f" % (state["n"], state["v"]))
    return x * state["v"], kept


def told_twice(state, x):
    def text(n):
        return "%0*d" % (n, 7)

    state["n"] += 2
    return x * state["n"], text(state["n"]), text(state["n"] + 1)


def with_a_deque(state, x):
    state["n"] += 1
    time.sleep(state["v"] * 0)
    return x * state["v"], list(deque(range(9), state["n"]))


FUNCTIONS = (in_the_function_itself, in_a_loop, told_twice, with_a_deque)


@pytest.mark.parametrize("way", JITS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_numbers_used_where_they_were_computed(function, way):
    def outcome(jit):
        state = {"n": 1, "v": 0.5}
        f = jit(lambda x: function(state, x))
        return [repr(f(tj.ones(2))) for _ in range(4)], state

    assert outcome(JITS[way]) == outcome(lambda f: f)


@pytest.mark.parametrize("use", ["star width", "ldexp", "deque", "numpy random"])
def test_an_argument_that_changes(use):
    f = tj.trace(lambda x, n, v: (x * n * v, USES[use](n, v)))
    for n in (2, 3, 4):
        x, found = f(tj.ones(1), n, n + 0.5)
        assert x.item() == n * (n + 0.5) and repr(found) == repr(USES[use](n, n + 0.5))
