"""The native `where` gives the bits of the general way."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest

import tracejit as tj
from tests.runtime.test_eager_calls import same, values
from tests.runtime.test_eager_reductions import native
from tracejit.core.ops import direct_calls
from tracejit.core.ops.direct_calls import functions
from tracejit.jit.runtime import eager_words

pytestmark = pytest.mark.skipif(not eager_words.available(), reason="no native code on this "
                                "interpreter")


def generally(*arguments):
    before, functions["where"].direct = functions["where"].direct, direct_calls.declines
    try:
        return tj.where(*arguments)
    finally:
        functions["where"].direct = before


@pytest.mark.parametrize("shape", [(1,), (), (17,), (3, 5)], ids=str)
@pytest.mark.parametrize("dtype", [tj.float32, tj.float64, tj.int64])
def test_elements_are_the_same_bits(dtype, shape):
    condition = tj.tensor(np.arange(int(np.prod(shape))).reshape(shape) % 3 == 0)
    x, y = values(dtype, shape, 1), values(dtype, shape, 2)
    answered = 0
    for pair in ((x, y), (x, x), (x, 2), (-3, y), (x, 0), (x, 0.1), (-0.0, x), (x, 1e-46)):
        found = native("where")(condition, *pair)
        if found is NotImplemented:
            assert dtype is tj.int64 and float in map(type, pair)
            continue
        answered += 1
        same(found, generally(condition, *pair))
        same(tj.where(condition, *pair), found)
    assert answered == (5 if dtype is tj.int64 else 8)


def test_what_is_not_plain_goes_the_general_way():
    x, condition = tj.ones(3), tj.tensor([True, False, True])
    w = tj.ones(3, requires_grad=True)
    direct = native("where")
    for pair in ((1, 2), (x, None), (None, None), (x, tj.ones(1)), (x, tj.tensor(1.0)), (w, x),
                 (x, w), (x, x.to(tj.float64)), (x, 1e39), (x, float("nan")), (x, float("inf")),
                 (x, True), (x, 2**40), (x.to(tj.int32), 1), (x, tj.tensor(2.0).expand(3))):
        assert direct(condition, *pair) is NotImplemented
    for other in (x, tj.ones(3, dtype=tj.uint8), condition[:2], True, None, condition[::2],
                  tj.tensor(True), tj.tensor(True).expand(3)):
        assert direct(other, x, x) is NotImplemented
    assert direct(condition) is NotImplemented
    with tj.no_grad():
        assert type(direct(condition, w, x)) is tj.Tensor
    assert type(tj.where(condition, w, x).grad_fn).__name__ == "WhereBackward0"


def test_no_reference_is_lost_or_kept():
    x, y, condition = tj.ones(3), tj.zeros(3), tj.tensor([True, False, True])
    watched = [x, y, condition, x._shape, condition._shape, None, False, True, (), NotImplemented]
    direct = native("where")

    def run():
        for _ in range(500):
            for pair in ((x, y), (x, 2.5), (3, x), (x, None), (x, 2**40)):
                direct(condition, *pair)

    run()
    gc.collect()
    before = [sys.getrefcount(z) for z in watched]
    run()
    gc.collect()
    moved = [sys.getrefcount(z) - count for z, count in zip(watched, before)]
    assert all(abs(count) < 200 for count in moved), moved  # a call that leaks makes it 500
