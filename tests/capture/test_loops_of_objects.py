"""Loops over objects of the user's that look like what the rewriter makes of `enumerate`."""

from collections import namedtuple

import numpy as np
import pytest

import tracejit

Named = namedtuple("Named", "function x")


class Like:
    """Iterable whose attributes must not be asked."""

    asked = 0
    function = enumerate

    def __iter__(self):
        return iter([1.0, 2.0])

    def __getattr__(self, name):
        type(self).asked += 1
        raise AttributeError(name)


@pytest.mark.parametrize("jit", [tracejit.script, tracejit.trace])
@pytest.mark.parametrize("items", [Named(np.ones(3), np.ones(3)), Like()], ids=["tuple", "class"])
def test_the_loop_asks_its_iterable_for_nothing(jit, items):
    def body(x, items):
        for item in items:
            x = x + item
        return x

    f, asked = jit(body), Like.asked
    for _ in range(3):
        assert f(tracejit.ones(3), items).tolist() == body(tracejit.ones(3), items).tolist()
    assert Like.asked == asked
