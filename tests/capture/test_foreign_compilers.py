"""Functions of other compilers in a captured function are opaque calls: right, named, and quick."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import tracejit as tj
from tests.shares import share
from tracejit.jit.capture import foreign_compilers

JITS = {"script": tj.script, "trace": tj.trace}


@numba.njit
def doubled(a):
    return a * 2


@numba.njit
def powered(a, n):
    return a**n


@numba.vectorize
def lifted(a):
    return a + 1


@numba.vectorize(["float64(float64)"])
def typed(a):
    return a + 2


@numba.guvectorize(["(float64[:], float64[:])"], "(n)->(n)")
def rows(a, out):
    for k in range(a.shape[0]):
        out[k] = a[k] * 3


@numba.njit
def failing(a):
    if a > 1:
        raise ValueError("too large")
    return a


def fresh(x, table):
    @numba.njit
    def new(a):
        return a + 5

    return x * float(new(table)[0])


def refused(x, table):
    try:
        return x * failing(float(table[0]) * 7)
    except ValueError as error:
        return x, str(error)


def typed_list(x, table):
    held = numba.typed.List([1.0, 2.0])
    held.append(3.0)
    return x * held[2] * len(held)


def typed_dict(x, table):
    held = numba.typed.Dict.empty(numba.types.int64, numba.types.float64)
    held[3] = 4.0
    return x * held[3]


USES = {
    "dispatcher": lambda x, table: x * float(doubled(table)[0]),
    "number": lambda x, table: x * powered(3.0, 2),
    "in a loop": lambda x, table: [x * doubled(k) for k in range(3)],
    "vectorize": lambda x, table: tj.from_numpy(lifted(x.numpy())),
    "ufunc": lambda x, table: x * float(typed(table)[0]),
    "guvectorize": lambda x, table: x * float(rows(table)[1]),
    "mapped": lambda x, table: x * sum(map(doubled, [1, 2])),
    "py_func": lambda x, table: doubled.py_func(x),
    "fresh": fresh,
    "refused": refused,
    "typed list": typed_list,
    "typed dict": typed_dict,
}


def taken(value):
    return value.tolist() if isinstance(value, tj.Tensor) else (
        [taken(x) for x in value] if isinstance(value, (list, tuple)) else value)


@pytest.mark.parametrize(("way", "use"), [
    pytest.param(way, use, marks=share(f"{use}-{way}", 6)) for use in USES for way in JITS])
def test_what_another_compiler_gives_is_right_and_named(way, use):
    table, plain = np.ones(3), USES[use]

    def function(x, table):
        return plain(x * 1.5, table)

    f = JITS[way](function)
    for x in (tj.ones(2), tj.ones(2) * 3, tj.ones(2)):
        assert taken(f(x, table)) == taken(function(x, table))


@pytest.mark.parametrize("way", JITS)
def test_the_break_names_the_function_and_its_line(way):
    f = JITS[way](lambda x: x * doubled(3.0))
    for _ in range(2):
        assert f(tj.ones(1)).item() == 6.0
    told = [str(b) for b in f.report().breaks]
    parts = "doubled", "another compiler", "hint"  # since 3.12 the call itself is not seen
    assert any(all(part in b for part in parts) for b in told), told
    assert all("test_foreign_compilers.py" in b for b in told), told


def test_numbers_that_change_reach_a_dispatcher_plain():
    state = {"n": 1, "v": 0.5}

    @tj.script
    def f(x):
        state["n"] += 1
        state["v"] += 1.0
        return x * powered(state["v"], state["n"])

    assert [f(tj.ones(1)).item() for _ in range(3)] == [1.5**2, 2.5**3, 3.5**4]


def test_what_only_holds_a_dispatcher_replays():
    table = {"function": doubled}

    def held(x):
        return x * 2 if table["function"] is doubled else x

    f = tj.script(held)
    for _ in range(4):
        assert f(tj.ones(1)).item() == 2.0
    if foreign_compilers.ANNOUNCED:
        assert f.report().cache_hits == 3 and not f.report().breaks
    else:
        assert "this version of Python does not show its calls" in str(f.report().breaks[0])
