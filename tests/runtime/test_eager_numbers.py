"""The native `item` gives the number, the errors and the references of the general way."""

import struct

import numpy as np
import pytest

import tracejit as tj
from tests.runtime.leaks import assert_level
from tests.runtime.test_eager_reductions import native
from tracejit.core.ops import direct_calls
from tracejit.core.ops.direct_calls import functions
from tracejit.jit.runtime import eager_words

pytestmark = pytest.mark.skipif(not eager_words.available(), reason="no native code on this "
                                "interpreter")
FLOATS = [0.0, -0.0, 1.5, -1e-45, 3.4028235e38, float("inf"), float("-inf"), float("nan"), 0.1]


def generally(x):
    before, functions["item"].direct = functions["item"].direct, direct_calls.declines
    try:
        return x.item()
    finally:
        functions["item"].direct = before


def same(found, expected):
    assert type(found) is type(expected)
    if type(found) is float:
        assert struct.pack("d", found) == struct.pack("d", expected)
    else:
        assert found == expected


@pytest.mark.parametrize(("dtype", "values"), [
    (tj.float32, FLOATS), (tj.float64, [*FLOATS, 1e300, 5e-324]),
    (tj.int64, [0, -1, 2**63 - 1, -(2**63)]), (tj.bool, [True, False])], ids=str)  # fmt: skip
def test_numbers_are_the_same(dtype, values):
    direct = native("item")
    for value in values:
        x = tj.tensor(value, dtype=dtype)
        some = tj.tensor([values[0], value, values[-1]], dtype=dtype)
        for y in (x, x.reshape(1, 1), some[1], some[1:2], x.expand(1), some[::2][1:]):
            if direct(y) is not NotImplemented:
                same(direct(y), generally(y))
            same(y.item(), generally(y))
        assert direct(x) is not NotImplemented and direct(some[1]) is not NotImplemented


def test_each_float_is_an_object_of_its_own():
    x, y = tj.tensor(1.5), tj.tensor(2.5)
    first, second = native("item")(x), native("item")(y)
    assert (first, second, float(0)) == (1.5, 2.5, 0.0)


def test_history_and_modes():
    w = tj.tensor(2.0, requires_grad=True)
    for x in (w, w * 1, tj.nn.Parameter(w.detach()), w.detach()):
        assert native("item")(x) == 2.0
    with tj.no_grad():
        assert native("item")(w) == 2.0
    with tj.inference_mode():
        assert native("item")(w) is NotImplemented and w.item() == 2.0


def test_a_recording_sees_the_number_asked_for():
    native("item")

    @tj.script
    def f(x):
        y = (x * 2).sum()
        return x * y.item()

    assert f(tj.ones(2)).tolist() == [4.0, 4.0] == f(tj.ones(2)).tolist()
    assert f(tj.full((2,), 2.0)).tolist() == [16.0, 16.0]


def test_what_is_not_plain_goes_the_general_way():
    class Own(tj.Tensor):
        pass

    one = tj.tensor(1.5)
    for x in (one.to(tj.int32), one.half(), one.to(tj.bfloat16), one.to(tj.complex64), tj.ones(2),
              tj.ones(0), tj.ones(1, device="meta"), one.as_subclass(Own), one.data, 1.5, None,
              one.numpy(), tj.ones([1] * 9)):  # fmt: skip
        assert native("item")(x) is NotImplemented
    assert native("item")() is native("item")(one, one) is NotImplemented
    for x, error in ((tj.ones(2), "2 elements"), (tj.ones(0), "0 elements"),
                     (tj.ones(1, device="meta"), "meta")):  # fmt: skip
        with pytest.raises(RuntimeError, match=error):
            x.item()
    released = tj.ones(1) * 2
    released.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="no memory"):
        released.item()


def test_writes_through_arrays_are_seen():
    array = np.zeros(1, np.float32)
    x = tj.from_numpy(array)
    array[0] = 3.0
    assert native("item")(x) == x.item() == 3.0


def test_no_reference_is_lost_or_kept():
    x, whole, true = tj.tensor(1.5), tj.tensor([2**40]), tj.tensor(True)
    direct = native("item")

    def run(times):
        for _ in range(times):
            for y in (x, whole, true, None):
                direct(y)

    assert_level(run, [x, whole, true, x._storage, None, True, False, 0, (), NotImplemented])
