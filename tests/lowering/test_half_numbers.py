"""Numbers beside halves compute in float32, and rounding between two halves is kept."""

import numpy as np
import pytest

import tracejit
from tracejit.nn import functional

HALVES = [tracejit.float16, tracejit.bfloat16]
WITH_NUMBER = {
    "mul": lambda x, c: x * c,
    "divided": lambda x, c: c / x,
    "less": lambda x, c: x < c,
    "where": lambda x, c: tracejit.where(x > c, c, x),
    "alpha": lambda x, c: tracejit.add(x, x, alpha=c),
    "leaky_relu": lambda x, c: functional.leaky_relu(x, c),
    "pad": lambda x, c: functional.pad(x, (1, 1), value=c) * x[0],
}


def same(function, *arguments, mode):
    expected = function(*arguments)
    found = tracejit.script(function, numerics="eager", mode=mode)(*arguments)
    assert found.dtype is expected.dtype
    assert found.numpy().tobytes() == expected.numpy().tobytes()


def given(dtype):
    values = np.random.default_rng(0).normal(size=(300,)).astype(np.float32)
    return tracejit.tensor(values).to(dtype)


@pytest.mark.parametrize("mode", ["graph", "python", "compiled"])
@pytest.mark.parametrize("dtype", HALVES, ids=repr)
@pytest.mark.parametrize("name", WITH_NUMBER)
def test_numbers_beside_halves_are_float32(name, dtype, mode):
    function = WITH_NUMBER[name]
    same(function, given(dtype), 0.001237, mode=mode)  # a number of the running program
    same(lambda x: function(x, 0.001237), given(dtype), mode=mode)  # a constant


@pytest.mark.parametrize("mode", ["python", "compiled"])
@pytest.mark.parametrize("between", HALVES, ids=repr)
@pytest.mark.parametrize("dtype", HALVES, ids=repr)
def test_a_half_between_two_others_is_rounded(dtype, between, mode):
    same(lambda x: x.to(between).to(tracejit.float32), given(dtype), mode=mode)
