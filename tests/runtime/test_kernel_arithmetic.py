"""What fused kernels compute where compilers are free to assume that nothing wraps, traps or
rounds once less: the same as the ops one by one."""

from __future__ import annotations

import pytest

import tracejit as tj
from tests.capture.shown import assert_same, seen

HIGHEST = 2**63 - 1
WHOLE = [HIGHEST, 5, -HIGHEST - 1, -7, 0, HIGHEST // 3] * 12

CASES = {
    "sums that wrap": lambda x: (x + 1 > x, x + x < x, (x + x) // 2, (x - 1) > x),
    "differences that wrap": lambda x: (x - 2 * x.flip(0) < 0, (x * 2 - x) - x),
    "hashes": lambda x: ((x * 2654435761 + 12345) % 97, ((x ^ (x >> 7)) + (x << 3)) & 1023),
    "totals that wrap": lambda x: (x.sum() + x[0], (x + x.flip(0)).cumsum(0), x.sum() > x.max()),
    "quotients that negate": lambda x: (x // -1, x % -1, tj.fmod(x, -1), x // (x * 0 - 1)),
}
FLOATS = {
    "bytes of what is out of range": lambda y: [
        (y * 300).to(d) for d in (tj.uint8, tj.int8, tj.int16, tj.int32)],
    "products that cancel": lambda y: (y * (y + 1) - (y * (y + 1)).clone(), (y * y - y * y) == 0),
    "products that overflow": lambda y: (y * 3e38 * 2 - y * 3e38, (y * 1e30) * 1e30 - 1e38),
}  # fmt: skip


@pytest.mark.parametrize("f", CASES.values(), ids=CASES)
def test_whole_numbers_wrap(f):
    x = tj.tensor(WHOLE)
    assert_same(seen(tj.script(f)(x)), seen(f(x)))


@pytest.mark.parametrize("f", FLOATS.values(), ids=FLOATS)
def test_every_operation_rounds(f):
    y = tj.linspace(-2, 2, 70)
    assert_same(seen(tj.script(f)(y)), seen(f(y)))


def test_products_meant_to_be_equal_are():
    a, b = tj.rand(100), tj.rand(100)
    assert (tj.script(lambda a, b, c: a * b - c)(a, b, a * b) == 0).all()


def test_numbers_and_sizes_divide_the_smallest_integer():
    x = tj.tensor([-HIGHEST - 1, 3])
    by_number = tj.script(lambda x, n: (x // n, x % n))
    by_size = tj.script(lambda x, y: x // (y.shape[0] - 5))
    for n in (3, -1, 2):
        assert_same(seen(by_number(x, n)), seen((x // n, x % n)))
        assert by_size(x, tj.ones(5 + n)).tolist() == (x // n).tolist()
