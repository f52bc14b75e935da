"""Native products give the bits, the history and the references of the general way."""

from __future__ import annotations

import pytest

import tracejit as tj
from tests.runtime.leaks import assert_level
from tests.runtime.test_eager_calls import history, same, values
from tests.runtime.test_eager_reductions import native
from tracejit.core.ops import direct_calls
from tracejit.core.ops.direct_calls import functions
from tracejit.jit.runtime import eager_words

pytestmark = pytest.mark.skipif(not eager_words.available(), reason="no native code on this "
                                "interpreter")
PUBLIC = {"matmul": tj.matmul, "linear": tj.nn.functional.linear}


def generally(name, *arguments):
    held = [functions[n] for n in ("matmul", "linear", "t", "transpose")]
    before = [f.direct for f in held]
    for f in held:
        f.direct = direct_calls.declines
    try:
        return PUBLIC[name](*arguments)
    finally:
        for f, direct in zip(held, before):
            f.direct = direct


def operands(name, m, k, n, dtype, layout="plain"):
    x, y = values(dtype, (m, k), 1), values(dtype, (k, n), 2)
    if layout == "turned":
        x, y = x.t().contiguous().t(), y.t().contiguous().t()
    if layout == "stepped":
        x, y = tj.cat([x, x], 1)[:, ::2][:, :k], tj.cat([y, y])[::2][:k]
    bias = values(dtype, (n,), 3)
    return (x, y) if name == "matmul" else (x, y.t(), bias)


@pytest.mark.parametrize("layout", ["plain", "turned", "stepped"])
@pytest.mark.parametrize("dtype", [tj.float32, tj.float64])
@pytest.mark.parametrize("sizes", [(2, 1, 2), (8, 8, 8), (3, 5, 7), (16, 64, 32), (2, 2000, 5),
                                   (45, 9, 45), (32, 32, 32), (32, 64, 64),
                                   (64, 32, 64), (90, 64, 91), (2, 1 << 16, 3)],
                         ids=str)  # fmt: skip
@pytest.mark.parametrize("name", list(PUBLIC))
def test_elements_are_the_same_bits(name, sizes, dtype, layout):
    given = operands(name, *sizes, dtype, layout)
    found = native(name)(*given)
    same(found, generally(name, *given))
    same(PUBLIC[name](*given), found)
    if name == "linear":
        same(native(name)(*given[:2], None), generally(name, *given[:2]))
    x = given[0].contiguous()
    if name == "matmul":
        for pair in ((x, x.t()), (x.t(), x)):
            found = native(name)(*pair)
            assert found is not NotImplemented or 1 in sizes or sizes[1] > 90
            if found is not NotImplemented:
                same(found, generally(name, *pair))


@pytest.mark.parametrize("name", list(PUBLIC))
def test_history_is_the_same(name):
    w = (tj.arange(12).reshape(3, 4) * 0.25).requires_grad_()
    v = tj.linspace(0, 1, 8).reshape(*((4, 2) if name == "matmul" else (2, 4))).requires_grad_()
    b = tj.ones(2, requires_grad=True)
    calls = [(x, y) for x in (w, w.detach(), w * 1, tj.nn.Parameter(w.detach()))
             for y in (v, v.detach(), v * 1)]
    if name == "linear":
        calls = [(*c, z) for c in calls for z in (b, b.detach(), None, tj.nn.Parameter(b.detach()))]
    for call in calls:
        found, expected = native(name)(*call), generally(name, *call)
        same(found.detach(), expected.detach())
        assert history(found) == history(expected)
        leaves = [x for x in (w, v, b) if any(x is y for y in call)]
        if expected.requires_grad and leaves:
            both = [[g.numpy().tobytes() for g in tj.autograd.grad(y.sum(), leaves)]
                    for y in (found, expected)]
            assert both[0] == both[1]
    with tj.no_grad():
        assert not native(name)(*calls[0]).requires_grad


@pytest.mark.parametrize("name", list(PUBLIC))
def test_what_is_not_plain_goes_the_general_way(name):
    x = tj.ones(4, 4)
    last = () if name == "matmul" else (None,)

    class Own(tj.Tensor):
        pass

    others = [x.to(tj.bfloat16), x.to(tj.int64), x.to(tj.bool), tj.ones(2, 4, 4), tj.ones(0, 4),
              tj.ones(3, 3), x.to(tj.float64), x.data, tj.ones(4, 4, device="meta"),
              x.as_subclass(Own), tj.ones(128, 128), 3, None, x.numpy()]  # fmt: skip
    if name == "linear":  # `matmul` has another native function for vectors
        others += [tj.ones(4), tj.ones(1, 4), tj.ones(4, 1)]
    for other in others:
        plain = isinstance(other, tj.Tensor) and (
            other.dtype is tj.float64 or tuple(other.shape) in ((1, 4), (4, 1), (3, 3)))
        if not plain:  # with another one of its kind
            assert native(name)(other, other, *last) is NotImplemented
        assert native(name)(x, other, *last) is NotImplemented
        assert native(name)(other, x, *last) is NotImplemented
    if name == "linear":
        for bias in (tj.ones(3), tj.ones(1, 4), tj.ones(()), tj.ones(4, dtype=tj.float64), 1.0,
                     tj.ones(8)[::2], tj.ones(1).expand(4)):
            assert native(name)(x, x, bias) is NotImplemented
    with tj.inference_mode():
        assert native(name)(x, x, *last) is NotImplemented
    assert native(name)(x) is NotImplemented
    long = tj.ones(2, (1 << 16) + 1)  # the general way adds such products in parts
    assert native(name)(long, long.t() if name == "matmul" else long, *last) is NotImplemented


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", list(PUBLIC))
def test_no_reference_is_lost_or_kept(name, recorded):
    x = tj.ones(4, 4, requires_grad=recorded) * 1
    y, b = tj.ones(4, 4, requires_grad=recorded), tj.ones(4, requires_grad=recorded)
    turned = (x.t(), y.t())
    last = [()] if name == "matmul" else [(b,), (None,)]
    watched = [x, y, b, *turned, x._shape, x._storage, None, True, False, (), tj.float32,
               NotImplemented]  # fmt: skip
    direct = native(name)

    def run(times):
        for _ in range(times):
            for bias in last:
                for pair in ((x, y), (x, x), turned, (x, b)):
                    direct(*pair, *bias)

    assert_level(run, watched)
