"""Tensors made of Python's numbers, of bounds and of other tensors, values written at positions
and to `out`: dtypes and refusals are PyTorch's."""

import math
import warnings

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle

MADE = {
    "a NumPy float among floats": lambda t: t.tensor([1.0, np.float64(2)]),
    "a NumPy float among ints": lambda t: t.tensor(((7, 5), (9, np.float64(5)))),
    "an array among ints": lambda t: t.tensor(((7, 5), (9, np.array(5.0)))),
    "a NumPy complex among ints": lambda t: t.tensor([1, np.complex128(1)]),
    "a small array after a bool": lambda t: t.tensor([True, np.array(2, dtype=np.int8)]),
    "tensors of two dtypes": lambda t: t.tensor([t.tensor(5, dtype=t.int32),
                                                 t.tensor(1.0, dtype=t.float16)]),
    "tensors of one element": lambda t: t.tensor([t.tensor([1]), t.tensor([2])]),
    "tensors of one and no dimension": lambda t: t.tensor([t.tensor(1), t.tensor([2])]),
    "tensors of two elements": lambda t: t.tensor([t.ones(2), t.ones(2)]),
    "tensors of two ints": lambda t: t.tensor([t.tensor([1, 2])]),
    "no elements": lambda t: t.tensor([[], []]),
    "a list in itself": lambda t: t.tensor(_in_itself()),
    "up to a tensor": lambda t: t.arange(t.tensor(3)),
    "up to a float tensor": lambda t: t.arange(t.tensor(3.0, dtype=t.float64)),
    "between integer tensors": lambda t: t.arange(t.tensor(1, dtype=t.int32), t.tensor(3)),
    "from a bool tensor": lambda t: t.arange(t.tensor(True), t.tensor(3), 1),
    "a complex step": lambda t: t.arange(1, 3, 1j),
    "between bools": lambda t: t.linspace(False, True, 3),
    "powers between bools": lambda t: t.logspace(False, True, 3),
    "powers of complex exponents": lambda t: t.view_as_real(
        t.logspace(1, 2 + 3j, 3, base=2)).round(decimals=4),
    "complex powers as reals": lambda t: t.logspace(1, 2j, 3, dtype=t.float32),
    "vectors without elements, joined": lambda t: t.cat([t.tensor([]), t.tensor([])], dim=1),
    "a grid on two devices": lambda t: t.meshgrid(t.ones(2), t.ones(3, device="meta"),
                                                  indexing="ij"),
    "a bound that requires grad": lambda t: t.linspace(t.tensor(1.0, requires_grad=True), 2, 3),
    "one element of a vector": lambda t: t.ones(3).gather(0, t.tensor(1)),
    "slopes beside infinity": lambda t: t.gradient(t.tensor([1.0, math.inf, math.inf, 3.0])),
    "slopes of bytes": lambda t: t.gradient(t.ones(3, dtype=t.uint8)),
    "outcomes as bools": lambda t: t.bernoulli(t.ones(3), out=t.zeros(3, dtype=t.bool)),
    "a number copied": lambda t: t.ones(2, dtype=t.int64).copy_(3.7),
    "a real part from a number": lambda t: _with_real_part(t.zeros(2, dtype=t.complex64)),
    "positions as a tensor of bools": lambda t: t.take_along_dim(t.ones(2), t.tensor([True]), 0),
    "nothing along a dimension": lambda t: t.take_along_dim(t.ones(2, 0), t.ones(2, 0).long(), 1),
    "a shape of floats": lambda t: t.unravel_index(t.tensor([1]), (1, 2.0)),
    "a negative shape": lambda t: t.unravel_index(t.tensor([1]), (1, -2)),
    "a negative stride": lambda t: t.as_strided(t.ones(3), (1,), (-1,)),
    "bool alpha": lambda t: t.add(t.ones(2), 1, alpha=True),
    "bool alpha of bools": lambda t: t.add(t.tensor([True]), True, alpha=True),
    "complex alpha": lambda t: t.add(t.tensor([1]), 1, alpha=1j),
    "dtype and out": lambda t: t.zeros((2,), out=t.empty(2), dtype=t.float64),
    "out that is to require grad": lambda t: t.ones((2,), out=t.empty(2), requires_grad=True),
}


def _with_real_part(x):
    x.real = 5
    return x


def _in_itself():
    found = [0]
    found.append(found)
    return found


def outcome(run, t):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            x = run(t)
        except (IndexError, RuntimeError, TypeError, ValueError) as error:
            return type(error).__name__
    if isinstance(x, tuple):
        return [str(y.tolist()) for y in x]
    return str(x.dtype).split(".")[1], x.requires_grad, str(x.tolist())


@pytest.mark.parametrize("case", MADE)
def test_made(case):
    assert outcome(MADE[case], tracejit) == outcome(MADE[case], torch)


@pytest.mark.parametrize("name", [
    "cat", "stack", "hstack", "vstack", "row_stack", "dstack", "column_stack"])
def test_what_is_no_list_of_tensors(name):
    for given in (lambda t: t.ones(3, 3), lambda t: [1, t.ones(1)], lambda t: [],
                  lambda t: iter([t.ones(1)]), lambda t: (t.ones(1), t.ones(1))):
        def run(t, given=given):
            return getattr(t, name)(given(t))

        assert outcome(run, tracejit) == outcome(run, torch)


KEYS = {
    "mask": lambda x, t: x > 0,
    "rows": lambda x, t: t.tensor([True, False, True]),
    "positions": lambda x, t: t.tensor([0, 1]),
    "slice": lambda x, t: slice(0, 2),
    "two vectors": lambda x, t: (t.tensor([0]), t.tensor([1])),
    "mask and number": lambda x, t: (t.tensor([True, False, True]), t.tensor(1)),
    "number": lambda x, t: t.tensor(1),
    "list": lambda x, t: [0, 2],
}
VALUES = {
    "float": lambda t: t.tensor(3.0),
    "int": lambda t: t.tensor(3),
    "one": lambda t: t.tensor([[3.0]]),
    "two": lambda t: t.ones(2),
    "complex": lambda t: t.tensor(1j),
    "plain": lambda t: 3,
}


@pytest.mark.parametrize("key", KEYS)
def test_values_of_another_dtype_at_positions(key):
    for value in VALUES:
        def run(t, value=value):
            x = t.ones(3, 2, dtype=t.float64)
            x[KEYS[key](x, t)] = VALUES[value](t)
            return x

        assert outcome(run, tracejit) == outcome(run, torch), value


@pytest.mark.filterwarnings("ignore:Casting complex")
def test_what_casts_nothing_to_its_out():
    for name in ("neg", "floor", "abs", "sign", "round", "tril", "softmax", "mm", "msort", "max",
                 "float_power", "square", "add", "clamp"):
        arguments = {"softmax": (0,), "mm": (1,), "float_power": (2,), "add": (1,), "clamp": (0,)}
        for of, to in (("float32", "float64"), ("float64", "float32"), ("complex64", "float32")):
            def run(t, name=name, of=of, to=to, more=arguments.get(name, ())):
                x = t.eye(2).to(getattr(t, of))
                more = (x,) if name == "mm" else more
                return getattr(t, name)(x, *more, out=t.empty(0, dtype=getattr(t, to)))

            found, expected = outcome(run, tracejit), outcome(run, torch)
            assert found == expected or {found, expected} == {
                "RuntimeError", "NotImplementedError"}, (name, of, to)


def test_warnings():
    for run, text in ((lambda: tracejit.meshgrid(tracejit.ones(2)), "indexing argument"),
                      (lambda: tracejit.ones(2)[tracejit.tensor([1, 0], dtype=tracejit.uint8)],
                       "uint8 is now deprecated")):
        with pytest.warns(UserWarning, match=text):
            run()
