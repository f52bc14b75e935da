"""Bad calls raise what PyTorch raises, word for word."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.types import float32, int64

pytestmark = pytest.mark.oracle


def i(value):
    return lambda make: make(np.array(value, np.int64))


BAD = {
    "reshape": lambda x, m: x.reshape(2, 5),
    "reshape ambiguous": lambda x, m: x[:0].reshape(0, -1),
    "reshape two unknown": lambda x, m: x.reshape(-1, -1),
    "reshape indivisible": lambda x, m: x.reshape(5, -1),
    "view": lambda x, m: x.t().view(12),
    "permute twice": lambda x, m: x.permute(0, 0),
    "permute few": lambda x, m: x.permute(0),
    "dim": lambda x, m: x.sum(2),
    "dim twice": lambda x, m: x.sum((0, -2)),
    "t": lambda x, m: x.reshape(2, 3, 2).t(),
    "expand": lambda x, m: x.expand(2, 2, 2),
    "addmm": lambda x, m: x[:, :2].addmm(x, x.t()),
    "narrow": lambda x, m: x.narrow(0, 1, 5),
    "select": lambda x, m: x.select(0, 5),
    "index": lambda x, m: x[0, 5],
    "index negative": lambda x, m: x[-4],
    "index many": lambda x, m: x[0, 0, 0],
    "index scalar": lambda x, m: x[0, 0][0],
    "index float": lambda x, m: x[0.5],
    "index float tensor": lambda x, m: x[m(np.array([0.0], np.float32))],
    "index step": lambda x, m: x[::-1],
    "index tensor": lambda x, m: x[i([5])(m)],
    "index mismatch": lambda x, m: x[i([0, 1])(m), i([0, 1, 2])(m)],
    "index mask": lambda x, m: x[m(np.array([True, False]))],
    "assign slice": lambda x, m: x.__setitem__(slice(0, 2), x[0, :3]),
    "assign tensor": lambda x, m: x.__setitem__(i([0, 1])(m), x[0, :3].clone()),
    "gather": lambda x, m: x.gather(0, i([[5]])(m)),
    "gather negative": lambda x, m: x.gather(0, i([[-1]])(m)),
    "gather large": lambda x, m: x.gather(0, i([[0] * 5])(m)),
    "gather rank": lambda x, m: x.gather(0, i([0])(m)),
    "gather float": lambda x, m: x.gather(0, x),
    "scatter": lambda x, m: x.scatter(0, i([[5]])(m), x),
    "scatter dtype": lambda x, m: x.scatter(0, i([[0]])(m), i([[0]])(m)),
    "index_select": lambda x, m: x.index_select(0, i([5])(m)),
    "index_select negative": lambda x, m: x.index_select(0, i([-1])(m)),
    "index_select matrix": lambda x, m: x.index_select(0, i([[0]])(m)),
    "index_add": lambda x, m: x.index_add(0, i([0])(m), x[:2]),
    "split": lambda x, m: x.split([1, 1]),
    "split negative": lambda x, m: x.split(-1),
    "chunk": lambda x, m: x.chunk(0),
    "tril": lambda x, m: x[0].tril(),
    "flip": lambda x, m: x.flip(0, 0),
    "roll": lambda x, m: x.roll((1, 2), 0),
    "mean": lambda x, m: i([1, 2])(m).mean(),
    "var": lambda x, m: i([1, 2])(m).var(),
    "amax": lambda x, m: x[:0].amax(),
    "amax dim": lambda x, m: x[:0].amax(0),
    "max": lambda x, m: x[:0].max(),
    "max dim": lambda x, m: x[:0].max(0),
    "argmin": lambda x, m: x[:0].argmin(),
    "argmin dim": lambda x, m: x[:0].argmin(0),
    "unbind": lambda x, m: x[0, 0].unbind(),
}


def raised(use, x, make):
    with pytest.raises((RuntimeError, IndexError, ValueError, TypeError)) as caught:
        use(x, make)
    return caught.type, str(caught.value)


@pytest.mark.parametrize("name", BAD)
def test_errors_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    kind, text = raised(BAD[name], torch.from_numpy(x.copy()), torch.from_numpy)
    ours, our_text = raised(BAD[name], Tensor.of_array(x.copy()), Tensor.of_array)
    assert (ours, our_text) == (kind, text)


@pytest.mark.parametrize("bias", [(3,), (1, 0), (2, 2), (3, 4)])
@pytest.mark.parametrize("rows", [(2,), (5, 2), (0,)])
@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
def test_a_bias_that_does_not_fit(bias, rows, mode):
    torch = pytest.importorskip("torch")
    import tracejit

    def theirs():
        return torch.nn.functional.linear(
            torch.ones(*rows, 3), torch.ones(4, 3), torch.ones(bias)
        ).shape

    linear = tracejit.nn.functional.linear
    ours = linear if mode == "eager" else tracejit.script(linear, mode=mode)
    try:
        expected = theirs()
    except RuntimeError as error:
        text = re.escape(str(error)) if len(rows) == 1 else "size"  # it folds the leading ones
        with pytest.raises(RuntimeError, match=text):
            ours(tracejit.ones(*rows, 3), tracejit.ones(4, 3), tracejit.ones(bias))
    else:
        found = ours(tracejit.ones(*rows, 3), tracejit.ones(4, 3), tracejit.ones(bias))
        assert tuple(found.shape) == tuple(expected)


@pytest.mark.parametrize("rows", [(4,), (2, 4), (2, 2, 2), (0, 2)])
@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_a_weight_of_three_dimensions(rows, mode):
    torch = pytest.importorskip("torch")
    import tracejit

    linear = tracejit.nn.functional.linear
    ours = linear if mode == "eager" else tracejit.script(linear, mode=mode)
    with pytest.raises(RuntimeError) as expected:
        torch.nn.functional.linear(torch.ones(rows), torch.ones(2, rows[-1], 2))
    with pytest.raises(RuntimeError, match=re.escape(str(expected.value))):
        ours(tracejit.ones(rows), tracejit.ones(2, rows[-1], 2))


def test_joining_nothing():
    from tracejit.core.ops.joining import cat, stack

    with pytest.raises(ValueError, match="expected a non-empty list of Tensors"):
        cat([])
    with pytest.raises(RuntimeError, match="stack expects a non-empty TensorList"):
        stack([])


def test_bad_sizes_of_new_tensors():
    from tracejit.core.ops.creation import arange, linspace, zeros

    with pytest.raises(RuntimeError, match="negative dimension -1"):
        zeros(2, -1)
    with pytest.raises(TypeError, match="sizes must be integers, got 2.5"):
        zeros(2.5)
    with pytest.raises(RuntimeError, match="step must be nonzero"):
        arange(0, 5, 0)
    with pytest.raises(RuntimeError, match="inconsistent with step sign"):
        arange(0, 5, -1)
    with pytest.raises(RuntimeError, match="number of steps must be non-negative"):
        linspace(0, 1, -1)
    assert zeros(2).dtype is float32 and arange(2).dtype is int64


def test_fills_that_do_not_fit():
    from tracejit.core.ops.creation import full
    from tracejit.core.ops.types import int8, int32, uint8

    assert full((2,), -1, dtype=uint8).tolist() == [255, 255]  # PyTorch wraps these alone
    for value, dtype, name in (
        (300, int8, "int8_t"), (256, uint8, "uint8_t"), (1 << 31, int32, "int"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=f"converted to type {name} without overflow"):
            full((2,), value, dtype=dtype)
    assert full((), -128, dtype=int8).item() == -128


def test_numbers_that_an_integer_dtype_has_not():
    from tracejit import bool as bool_
    from tracejit import int8, int64, tensor, uint8

    for data in (300, [1, -129], 127.5, [[float("nan")]], float("inf"), -float("inf")):
        with pytest.raises(RuntimeError, match="to type int8 without overflow"):
            tensor(data, dtype=int8)
    with pytest.raises(RuntimeError, match="to type int64 without overflow"):
        tensor(float("nan"), dtype=int64)
    with pytest.raises(RuntimeError, match="to type uint8 without overflow"):
        tensor([-256], dtype=uint8)
    for data in (2**63, [2**63], [[1, 2**63]]):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            tensor(data)
    assert tensor([-1, 255], dtype=uint8).tolist() == [255, 255]
    assert tensor([300, 0], dtype=bool_).tolist() == [True, False]
