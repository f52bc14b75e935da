"""Native reductions give the bits, the history and the references of the general way."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit as tj
from tests.runtime.leaks import assert_level
from tests.runtime.test_eager_calls import SPECIAL, history, same, values
from tracejit.core.ops import direct_calls
from tracejit.core.ops.direct_calls import functions
from tracejit.jit.runtime import eager_words

pytestmark = pytest.mark.skipif(not eager_words.available(), reason="no native code on this "
                                "interpreter")
PUBLIC = {"sum": tj.sum, "mean": tj.mean, "max": lambda x, dim, keep: x.max(), "argmax": tj.argmax}
SHAPES = [(1,), (2,), (7,), (8,), (9,), (16,), (130,), (2048,), (3, 5), (5, 1), (2, 3, 4), (1, 1),
          (4, 33), (2, 1000), (200, 3), (200, 9), (1, 7, 1), (128, 8), (8, 128)]  # fmt: skip


def native(name):
    if functions[name].direct.__class__.__name__ != "builtin_function_or_method":
        direct_calls.make(functions[name])
    assert functions[name].direct.__class__.__name__ == "builtin_function_or_method"
    return functions[name].direct


def generally(name, *arguments):
    before, functions[name].direct = functions[name].direct, direct_calls.declines
    try:
        return PUBLIC[name](*arguments)
    finally:
        functions[name].direct = before


@pytest.mark.parametrize("dtype", [tj.float32, tj.float64, tj.int64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", list(PUBLIC))
def test_elements_are_the_same_bits(name, shape, dtype):
    answered = 0
    for seed in range(4):
        x = values(dtype, shape, seed)
        if seed > 1 and dtype is not tj.int64:  # without what makes everything NaN
            x = tj.tensor(np.nan_to_num(x.numpy() * dtype.numpy.type(1e-3), posinf=1, neginf=-1))
        for dim, keepdim in ((None, False), (-1, False), (len(shape) - 1, True), ((-1,), True),
                             (0, False), (-len(shape), True), ((0,), True)):
            if name == "max" and (dim is not None or keepdim):
                continue
            found = native(name)(x, dim, keepdim)
            if found is NotImplemented:
                known = name == "mean" and dtype is tj.int64
                known |= type(dim) is tuple and name not in ("sum", "mean")
                across = dim not in (None, -1, (-1,), len(shape) - 1)
                many = shape[0] > 128 and np.prod(shape) > 1024
                adds = name in ("sum", "mean") and len(shape) == 2 and shape[1] > 1 and not many
                assert known or across and not adds
                continue
            answered += 1
            same(found, generally(name, x, dim, keepdim))
            same(PUBLIC[name](x, dim, keepdim), found)
    assert answered or dtype is tj.int64


@pytest.mark.parametrize("name", list(PUBLIC))
def test_special_values(name):
    for value in SPECIAL:
        for count in (1, 2, 9):
            x = tj.tensor([value] * count)
            same(native(name)(x, None, False), generally(name, x, None, False))
            x = tj.tensor([value, -0.0, 0.0, value, 1.0])
            same(native(name)(x, None, False), generally(name, x, None, False))


@pytest.mark.parametrize("name", list(PUBLIC))
def test_history_is_the_same(name):
    leaf = tj.arange(12).reshape(3, 4).to(tj.float32).requires_grad_()
    for x in (leaf, leaf * 1, (leaf * 1).reshape(4, 3)):
        for dim, keepdim in ((None, False), (1, False), (-1, True), (0, False), ((0,), True)):
            if dim in (0, (0,)) and name not in ("sum", "mean"):
                continue
            if name == "max" and dim is not None:
                continue
            found, expected = native(name)(x, dim, keepdim), generally(name, x, dim, keepdim)
            same(found.detach(), expected.detach())
            assert history(found) == history(expected)
            if expected.requires_grad:
                grads = [tj.autograd.grad(y.sum(), leaf, retain_graph=True)[0].numpy().tobytes()
                         for y in (found, expected)]
                assert grads[0] == grads[1]
    with tj.no_grad():
        assert not native(name)(leaf, None, False).requires_grad


@pytest.mark.parametrize("name", list(PUBLIC))
def test_what_is_not_plain_goes_the_general_way(name):
    x = tj.ones(3, 4)

    class Own(tj.Tensor):
        pass

    others = [x.t(), x.to(tj.bfloat16), x.to(tj.int32), x.to(tj.bool), tj.ones(0), tj.tensor(1.0),
              tj.ones(3000), tj.ones(2, device="meta"), x.as_subclass(Own), x.data, 3, "a", None,
              tj.tensor(1.0).expand(3)]  # fmt: skip
    for other in others:
        assert native(name)(other, None, False) is NotImplemented
        assert native(name)(other, -1, False) is NotImplemented
    for dim in (0, 2, -2, -3, (0,), (), (0, 1), (1.0,), True, 1.0, "a", 2**70, [0]):
        if name not in ("sum", "mean") or dim not in (0, -2, (0,)) or dim is False:
            assert native(name)(x, dim, False) is NotImplemented
    assert native(name)(x, None, 1) is native(name)(x) is NotImplemented
    with tj.inference_mode():
        assert native(name)(x, None, False) is NotImplemented


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", list(PUBLIC))
def test_no_reference_is_lost_or_kept(name, recorded):
    x = tj.ones(3, 4, requires_grad=recorded) * 1
    watched = [x, x._shape, x._storage, None, True, False, (), tj.float32, NotImplemented]
    direct = native(name)

    def run(times):
        for _ in range(times):
            for arguments in ((None, False), (1, True), (-1, False), (0, False), (2**70, False)):
                direct(x, *arguments)

    assert_level(run, watched)
