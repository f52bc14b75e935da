"""Native products with a vector give the bits, history and references of the general way."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tracejit as tj
from tests.runtime.leaks import assert_level
from tests.runtime.test_eager_calls import history, same, values
from tests.runtime.test_eager_reductions import native
from tracejit.core.ops import direct_calls
from tracejit.core.ops.direct_calls import functions
from tracejit.jit.lowering.vector_products import columns_kernel, rows_kernel
from tracejit.jit.runtime import eager_vectors, eager_words

pytestmark = pytest.mark.skipif(not eager_words.available(), reason="no native code on this "
                                "interpreter")
PUBLIC = {"matmul": tj.matmul, "mv": tj.mv, "dot": tj.dot}
SHAPES = [((8, 8), (8,)), ((3, 5), (5,)), ((300, 40), (40,)), ((2, 2000), (2000,)), ((1, 7), (7,)),
          ((7,), (7,)), ((3000,), (3000,)), ((1,), (1,)), ((8,), (8, 8)), ((40,), (40, 300)),
          ((1, 8), (8, 5)), ((5, 8), (8, 1)), ((1, 8), (8, 1)), ((4, 1), (1, 1)),
          ((1030, 33), (33,)), ((33,), (33, 1030))]  # fmt: skip
LAYOUTS = {
    "plain": lambda x: x,
    "turned": lambda x: x.t().contiguous().t() if x.dim() > 1 else x,
    "stepped": lambda x: tj.stack([x, x + 7], -1)[..., 0],
    "wider": lambda x: tj.cat([x, x + 7], -1)[..., : x.shape[-1]],
}


def ways(shapes):
    """The functions that take operands of these shapes."""
    ranks = tuple(map(len, shapes))
    return ["matmul", *{(2, 1): ["mv"], (1, 1): ["dot"]}.get(ranks, [])]


@pytest.fixture(autouse=True)
def kernels():
    for dtype in ("float32", "float64"):
        for kernel in (rows_kernel(dtype), columns_kernel(dtype)):
            eager_vectors._address(kernel, True)


def generally(name, *arguments):
    held = [functions[n] for n in ("matmul", "mv", "dot", "t", "transpose")]
    before = [f.direct for f in held]
    for f in held:
        f.direct = direct_calls.declines
    try:
        return PUBLIC[name](*arguments)
    finally:
        for f, direct in zip(held, before):
            f.direct = direct


@pytest.mark.parametrize("dtype", [tj.float32, tj.float64])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_elements_are_the_same_bits(shapes, dtype):
    answered = 0
    for first in LAYOUTS.values():
        for second in LAYOUTS.values():
            x, y = (turn(tj.tensor(np.random.default_rng(k).standard_normal(shape)).to(dtype))
                    for k, (shape, turn) in enumerate(zip(shapes, (first, second))))
            for name in ways(shapes):
                found = native(name)(x, y)
                if found is not NotImplemented:
                    answered += 1
                    same(found, generally(name, x, y))
    assert answered >= 4


@pytest.mark.parametrize("shapes", [((1500, 900), (900,)), ((900,), (900, 1500))], ids=str)
def test_large_ones_have_the_same_bits_on_any_number_of_threads(shapes):
    x, y = (tj.tensor(np.random.default_rng(k).standard_normal(shape))
            for k, shape in enumerate(shapes))
    expected = generally("matmul", x, y)
    try:
        for count in (1, 2, 3):
            tj.set_num_threads(count)
            for given in ((x, y), tuple(LAYOUTS["turned"](z) for z in (x, y))):
                for _ in range(3):
                    same(native("matmul")(*given), expected)
    finally:
        tj.set_num_threads(None)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_special_numbers_are_where_they_are_in_the_general_way(shapes):
    x, y = (values(tj.float32, shape, k) for k, shape in enumerate(shapes))
    for name in ways(shapes):
        np.testing.assert_array_equal(native(name)(x, y).numpy(), generally(name, x, y).numpy())


@pytest.mark.parametrize("shapes", [((3, 4), (4,)), ((4,), (4,)), ((4,), (4, 3)),
                                    ((1, 4), (4, 3)), ((3, 4), (4, 1))], ids=str)  # fmt: skip
def test_history_is_the_same(shapes):
    w, v = (tj.linspace(0, 1, int(np.prod(shape))).reshape(shape).requires_grad_()
            for shape in shapes)
    calls = [(x, y) for x in (w, w.detach(), w * 1, tj.nn.Parameter(w.detach()))
             for y in (v, v.detach(), v * 1)]
    for name in ways(shapes):
        for call in calls:
            found, expected = native(name)(*call), generally(name, *call)
            same(found.detach(), expected.detach())
            assert history(found) == history(expected)
            leaves = [x for x in (w, v) if any(x is y for y in call)]
            if expected.requires_grad and leaves:
                both = [[g.numpy().tobytes() for g in tj.autograd.grad(y.sum(), leaves)]
                        for y in (found, expected)]
                assert both[0] == both[1]
        with tj.no_grad():
            assert not native(name)(*calls[0]).requires_grad


def test_a_vector_times_itself():
    x = tj.linspace(0, 1, 9, requires_grad=True)
    for name in ("matmul", "dot"):
        found, expected = native(name)(x, x), generally(name, x, x)
        assert history(found) == history(expected) and found.item() == expected.item()
        assert tj.autograd.grad(found, x)[0].equal(2 * x)


@pytest.mark.parametrize("name", list(PUBLIC))
def test_what_is_not_plain_goes_the_general_way(name):
    x = tj.ones(4) if name == "dot" else tj.ones(4, 4)
    y = tj.ones(4)
    assert native(name)(x, y) is not NotImplemented

    class Own(tj.Tensor):
        pass

    others = [y.to(tj.bfloat16), y.to(tj.int64), y.to(tj.bool), tj.ones(2, 4, 4), tj.ones(0),
              tj.ones(3), y.to(tj.float64), y.data, tj.ones(4, device="meta"), y.as_subclass(Own),
              tj.ones(()), 3, None, y.numpy()]  # fmt: skip
    for other in others:
        assert native(name)(x, other) is NotImplemented
        if not isinstance(other, tj.Tensor) or other.dtype is not x.dtype:
            assert native(name)(other, y) is NotImplemented
    with tj.inference_mode():
        assert native(name)(x, y) is NotImplemented
    assert native(name)(x) is native(name)(x, y, y) is NotImplemented
    long = tj.ones((1 << 23) + 1)
    assert native(name)(long if name == "dot" else long.view(1, -1), long) is NotImplemented
    if name != "matmul":
        wrong = tj.ones(4, 4) if name == "dot" else tj.ones(4)
        assert native(name)(wrong, y) is NotImplemented
    for shape in ((4, 4), (4,)):  # no rows and no columns that lie side by side
        both = tj.ones(8, 8)[::2, ::2] if len(shape) == 2 else tj.ones(8)[::2]
        if name == "matmul":
            assert (native(name)(both, y) is NotImplemented) == (len(shape) == 2)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", list(PUBLIC))
def test_no_reference_is_lost_or_kept(name, recorded):
    x = tj.ones(4, 4, requires_grad=recorded) * 1
    y = tj.ones(4, requires_grad=recorded)
    pairs = {"matmul": [(x, y), (y, x), (y, y), (x[:1], x), (x, 3)], "mv": [(x, y), (y, y)],
             "dot": [(y, y), (x, y)]}[name]  # fmt: skip
    watched = [x, y, x._shape, x._storage, None, True, False, (), tj.float32, NotImplemented]
    direct = native(name)

    def run(times):
        for _ in range(times):
            for pair in pairs:
                direct(*pair)

    assert_level(run, watched)


@pytest.mark.parametrize(
    "call", ["x + x", "x @ x", "a @ x", "x @ a", "tj.mv(a, x)", "tj.dot(x, x)"])
def test_a_fresh_process_makes_its_first_native_function(call):
    """What the makers import must not call ops, whose makers would be half imported."""
    program = ("import sys, tracejit as tj\nx, a = tj.ones(3), tj.ones(3, 3)\n"
               f"for _ in range(700): {call}\n"
               "print(any('jit.passes' in name for name in sys.modules))")  # fmt: skip
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == "False"
