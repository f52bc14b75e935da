"""Which numbers and texts are one object, nan in containers, numbers in what calls return: as
Python has it, call by call."""

from __future__ import annotations

import functools
import gc
import itertools
import math
import types
import weakref

import pytest

import tracejit as tj

HALF, SEVEN, THOUSAND, MEAN, NAN = 0.5, 7, 1000, "mean", math.nan


def is_half(x, w):
    return x if w is HALF else x * 2


def is_not_half(x, w):
    return x if w is not HALF else x * 2


def is_thousand(x, n):
    return x if n is THOUSAND else x * 2


def is_mean(x, mode):
    return x if mode is MEAN else x * 2


def is_seven(x, n):
    return x if n is SEVEN else x * 2


def is_one(x, n):
    return x if n is 1 else x * 2  # noqa: F632


def are_seven(x, a, b):
    return x if a is b is SEVEN else x * 2


def is_length(x, n):
    return x if x.shape[0] is n else x * 2


def is_among(x, w):
    return x if w in [NAN, 1.0] else x * 2


def is_the_sum(x, w):
    return x if x.sum().item() is w else x * 2


def equal(constant):
    """The constant, in an object of its own."""
    return type(constant)("1000" if constant == 1000 else str(constant))


CALLS = {
    is_half: [(HALF,), (0.25,), (equal(HALF),), (HALF,)],
    is_not_half: [(HALF,), (0.25,), (equal(HALF),), (HALF,)],
    is_thousand: [(THOUSAND,), (equal(THOUSAND),), (1,), (THOUSAND,)],
    is_mean: [(MEAN,), ("".join(["me", "an"]),), ("sum",), (MEAN,)],
    is_seven: [(7,), (8,), (7,), (3,)],
    is_one: [(1,), (2,), (1,)],
    are_seven: [(7, 7), (7, 8), (3, 3), (7, 7)],
    is_length: [(3,), (4,), (3,)],
    is_among: [(NAN,), (1.0,), (2.0,), (float("nan"),), (NAN,)],
    is_the_sum: [(3.0,), (4.0,)],
}
SMALL = (is_seven, is_one, are_seven)  # what code that runs as it stands can be asked


@pytest.mark.parametrize("function", CALLS, ids=lambda f: f.__name__)
def test_a_script_says_what_python_says(function):
    captured, x = tj.script(function), tj.ones(3)
    for arguments in CALLS[function]:
        assert captured(x, *arguments).tolist() == function(x, *arguments).tolist(), arguments


@pytest.mark.parametrize("function", SMALL, ids=lambda f: f.__name__)
def test_a_trace_knows_small_numbers(function):
    captured, x = tj.trace(function), tj.ones(3)
    for arguments in CALLS[function]:
        assert captured(x, *arguments).tolist() == function(x, *arguments).tolist(), arguments


def test_small_numbers_and_other_values_need_no_break():
    for function in (is_seven, is_one, are_seven):
        captured = tj.script(function)
        for arguments in CALLS[function]:
            captured(tj.ones(3), *arguments)
        assert not captured.report().breaks
    captured = tj.script(is_half)
    captured(tj.ones(3), 0.25)
    assert not captured.report().breaks
    captured(tj.ones(3), HALF)
    assert "equal constants are one object" in str(captured.report())


class Given:
    number = 2


def methods_of_constants(x):
    n, size, pending = Given.number, x.shape[0], x.sum().item()
    found = [(1).__add__(n), (3).__eq__(n), (2).__rsub__(size), (2.0).__add__(pending)]
    return found + [pow(3, n, 101), pow(3, size, 101), pow(base=2, exp=n), math.ldexp(1.5, n)]


def test_methods_of_constants_take_what_stands_for_a_number():
    captured = tj.script(methods_of_constants)
    for Given.number in (2, 2, 4, 1):
        x = tj.ones(Given.number + 1)
        assert captured(x) == methods_of_constants(x)


def in_a_partial(n):
    return functools.partial(max, n, key=functools.partial(min, n))


def in_a_default(n):
    return lambda k=n, *, m=[n]: (k, m)


def in_a_variable(n):
    return lambda: n


def in_an_exception(n):
    return ValueError(n, f"{n}")


def in_a_namespace(n):
    return types.SimpleNamespace(n=n, more=[n])


def in_views(n):
    return {"n": n}.values(), {"n": n}.items(), types.MappingProxyType({"n": n})


def in_iterators(n):
    return iter([n]), enumerate([n]), map(abs, [n]), itertools.cycle([n]), (v for v in [n])


def inside(value, seen):
    """Everything that a value holds."""
    if id(value) in seen or isinstance(value, (type, types.ModuleType)):
        return
    seen[id(value)] = value
    yield value
    held = gc.get_referents(value)
    if isinstance(value, types.FunctionType):
        cells = [c.cell_contents for c in value.__closure__ or ()]
        held = [value.__defaults__, value.__kwdefaults__, *cells]
    for x in held:
        yield from inside(x, seen)


HOLDERS = [in_a_partial, in_a_default, in_a_variable, in_an_exception, in_a_namespace, in_views,
           in_iterators]  # fmt: skip


@pytest.mark.parametrize("make", HOLDERS, ids=lambda f: f.__name__)
def test_what_a_call_returns_holds_plain_numbers(make):
    captured = tj.script(lambda x: make(x.shape[0]))
    for size in (300, 300, 400):
        found = list(inside(captured(tj.ones(size)), {}))
        assert not [x for x in found if type(x).__module__.startswith("tracejit")]
        assert any(type(x) is int and x == size for x in found)


def test_a_weak_proxy_whose_object_is_gone():
    class Scale:
        factor = 2.0

    held = Scale()
    proxy = weakref.proxy(held)

    def scaled(x):
        try:
            return x * proxy.factor
        except ReferenceError:
            return x

    for jit in (tj.script, tj.trace):
        held = Scale()
        proxy = weakref.proxy(held)
        captured = jit(scaled)
        assert captured(tj.ones(2)).tolist() == [2.0, 2.0]
        del held
        assert captured(tj.ones(2)).tolist() == captured(tj.ones(2)).tolist() == [1.0, 1.0]


def sizes_by_type(x, n):
    size = x.shape[0]
    return x * 2 if type(size) is int and type(n) in (int, float) else x


def is_int(n):
    return type(n) is int


def sizes_asked_by_another(x, n):
    size = x.shape[0]
    return x * 2 if is_int(size) and not is_int(n) else x


@pytest.mark.parametrize("program", [sizes_by_type, sizes_asked_by_another])
def test_code_that_runs_as_it_stands_may_ask_for_the_type_of_a_size(program):
    for captured in (tj.trace(program), tj.script(program)):
        for size, n in ((3, 2), (4, 2.5), (3, 3)):
            assert captured(tj.ones(size), n).tolist() == program(tj.ones(size), n).tolist()
