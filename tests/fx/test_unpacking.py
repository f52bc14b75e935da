"""A traced value may be unpacked into names; loops over one are refused."""

import pytest

import tracejit
from tracejit import fx


def halves(x):
    first, second = x.chunk(2)
    return second - first


def nested(x):
    (first, second), third = x.chunk(2), x.sum()
    return first * second + third


def three(x):
    a, b, c = x.split(2)
    return a + b * c


@pytest.mark.parametrize("function", [halves, nested, three])
def test_unpacking_takes_the_elements_by_number(function):
    traced = fx.symbolic_trace(function)
    x = tracejit.arange(6.0)
    assert traced(x).tolist() == function(x).tolist()


@pytest.mark.parametrize("function", [lambda x: [y + 1 for y in x], lambda x: list(x)])
def test_what_loops_over_a_value_is_refused(function):
    with pytest.raises(fx.proxy.TraceError, match="Proxy object cannot be iterated"):
        fx.symbolic_trace(function)
