"""Products with a vector: one order of additions, however operands lie and whatever computes."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import tracejit as tj
from tracejit.core.ops import vector_products
from tracejit.core.ops.array_sums import PART
from tracejit.core.ops.vector_products import BLOCK, LANES, by_numpy
from tracejit.jit.lowering.vector_products import columns_kernel, rows_kernel
from tracejit.jit.runtime import eager_vectors

SHAPES = [((5, 7), (7,)), ((7,), (7, 9)), ((7,), (7,)), ((1, 40), (40, 30)), ((30, 40), (40, 1)),
          ((1, 600), (600, 1)), ((3, 5, 17), (3, 17, 1)), ((3, 1, 17), (3, 17, 6)),
          ((3, 5, 17), (17,)), ((2100, 33), (33,)), ((33,), (33, 2100)), ((20, 1100), (1100,)),
          ((1, 1), (1, 5)), ((4, 1), (1, 1)), ((0, 3), (3,)), ((3, 0), (0,)), ((1, 4097), (4097,)),
          ((2, 70_000), (70_000,)), ((70_001,), (70_001,)), ((300, 2000), (2000,)),
          ((2000,), (2000, 300))]  # fmt: skip
LAYOUTS = {
    "plain": lambda x: x,
    "turned": lambda x: x.mT.contiguous().mT if x.ndim > 1 else x.flip(0).flip(0),
    "stepped": lambda x: tj.stack([x, x + 7], -1)[..., 0],
    "wider": lambda x: tj.cat([x, x + 7], -1)[..., : x.shape[-1]],
}
WAYS = {
    "eager": lambda a, b: a @ b,
    "compiled": tj.script(lambda a, b: a @ b),
    "python": tj.script(lambda a, b: a @ b, mode="python"),
    "interpreter": tj.script(lambda a, b: a @ b, mode="graph"),
    "eager numerics": tj.script(lambda a, b: a @ b, numerics="eager"),
}


def one_by_one(row, vector):
    """One sum, in the order that `core/ops/vector_products.py` tells, number by number."""
    kind = row.dtype.type
    total, part = np.float64(0), np.float64(0)
    for begin in range(0, len(row), BLOCK):
        if begin % PART == 0:
            total, part = total + part, np.float64(0)
        lanes = [kind(0)] * LANES
        for k in range(begin, min(begin + BLOCK, len(row))):
            lanes[k % LANES] = lanes[k % LANES] + row[k] * vector[k]
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [x + y for x, y in zip(lanes[:half], lanes[half:])]
        part = part + np.float64(lanes[0])
    return kind(total + part)


@pytest.fixture
def kernels():
    """Eager mode has all kernels, as after some calls."""
    for dtype in ("float32", "float64"):
        for kernel in (rows_kernel(dtype), columns_kernel(dtype)):
            eager_vectors._address(kernel, True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("terms", [0, 1, 15, 16, 17, 511, 512, 513, 2049, 5000, PART + 700])
def test_the_order_is_the_one_that_is_told(terms, dtype, kernels):
    rng = np.random.default_rng(terms)
    a, x = rng.standard_normal((3, terms)).astype(dtype), rng.standard_normal(terms).astype(dtype)
    expected = np.array([one_by_one(row, x) for row in a])
    assert by_numpy(a, x[:, None]).tobytes() == expected.tobytes()
    assert (tj.tensor(a) @ tj.tensor(x)).numpy().tobytes() == expected.tobytes()
    for k in range(3):
        assert tj.dot(tj.tensor(a[k]), tj.tensor(x)).numpy().tobytes() == expected[k].tobytes()
    if terms:
        assert eager_vectors.product(a, x[:, None], (3,)) is not None


@pytest.mark.parametrize("dtype", [tj.float32, tj.float64])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_every_way_and_layout_has_the_same_bits(shapes, dtype, kernels):
    tj.manual_seed(0)
    a, b = (tj.randn(shape, dtype=dtype) for shape in shapes)
    expected = (a @ b).numpy()
    wide = np.matmul(a.double().numpy(), b.double().numpy())
    np.testing.assert_allclose(expected, wide, rtol=1e-3, atol=1e-3)
    for (one, first), (other, second) in itertools.product(LAYOUTS.items(), repeat=2):
        x, y = first(a), second(b)
        for way, product in WAYS.items():
            assert product(x, y).numpy().tobytes() == expected.tobytes(), (one, other, way)


def test_numpy_has_the_bits_of_the_kernels(monkeypatch):
    tj.manual_seed(0)
    for shapes in SHAPES:
        a, b = (tj.randn(shape) for shape in shapes)
        found = (a @ b).numpy()
        with monkeypatch.context() as patch:
            patch.setattr(vector_products, "_native", [])
            assert WAYS["eager numerics"](a, b).numpy().tobytes() == found.tobytes()


@pytest.mark.parametrize("dtype", [tj.float32, tj.float64])
def test_the_number_of_threads_does_not_matter(dtype):
    tj.manual_seed(0)
    a, x, y = (tj.randn(shape, dtype=dtype) for shape in ((2600, 2100), (2100,), (2600,)))
    products = [lambda: a @ x, lambda: y @ a, lambda: a.t() @ y]
    scripted = tj.script(lambda a, x, y: (a @ x, y @ a))
    products += [lambda: scripted(a, x, y)[0], lambda: scripted(a, x, y)[1]]
    found = []
    try:
        for threads in (1, 2, 3):
            tj.set_num_threads(threads)
            found.append([product().numpy().tobytes() for product in products])
    finally:
        tj.set_num_threads(None)
    assert found[0] == found[1] == found[2]
    assert found[0][1] == found[0][2] == found[0][4] and found[0][0] == found[0][3]


@pytest.mark.parametrize("n", [100, 10**4, pytest.param(10**6, marks=pytest.mark.full)])
@pytest.mark.parametrize("dtype", [tj.float32, tj.float64])
def test_the_error_is_below_its_bound(dtype, n):
    """The bounds of docs/numerics.md, of sums that cancel too."""
    unit, bound = (2.0**-24, 40) if dtype is tj.float32 else (2.0**-53, 170 + n / PART)
    rng = np.random.default_rng(0)
    for low in (0.0, -1.0):
        a, x = (rng.uniform(low, 1, n).astype(dtype.numpy) for _ in range(2))
        products = [Fraction(float(p)) * Fraction(float(q)) for p, q in zip(a, x)]
        exact, size = sum(products), sum(map(abs, products))
        for found in (tj.dot(tj.tensor(a), tj.tensor(x)),
                      (tj.tensor(a) @ tj.tensor(np.stack([x, x], 1))[:, :1])[0],
                      WAYS["compiled"](tj.tensor(a), tj.tensor(x))):
            assert abs(Fraction(found.item()) - exact) < bound * unit * size


def test_special_numbers(kernels):
    inf, nan = math.inf, math.nan
    for k in (3, 20, 600):
        for values, expected in (((1.0, inf), inf), ((inf, -inf), nan), ((nan, 1.0), nan),
                                 ((-0.0, -0.0), 0.0), ((3e38, 3e38), inf)):  # fmt: skip
            x = tj.zeros(k)
            x[0], x[-1] = values
            ones = tj.ones(5, k)
            for product in WAYS.values():
                for found in (product(ones, x), product(x, ones.t().contiguous())):
                    np.testing.assert_array_equal(found.numpy(), np.full(5, expected, np.float32))
                    if expected == 0:
                        assert not np.signbit(found.numpy()).any()


def test_halves_add_in_float32(kernels):
    tj.manual_seed(0)
    for dtype in (tj.float16, tj.bfloat16):
        a, x = tj.randn(30, 700).to(dtype), tj.randn(700).to(dtype)
        expected = (a.float() @ x.float()).to(dtype)
        for way, product in WAYS.items():
            assert product(a, x).equal(expected), way


def test_gradients_are_the_products_that_they_should_be():
    tj.manual_seed(0)
    a, x = tj.randn(40, 30, requires_grad=True), tj.randn(30, requires_grad=True)
    y = tj.randn(40, requires_grad=True)
    for f in (lambda a, x, y: a @ x, lambda a, x, y: y @ a, lambda a, x, y: (a @ x) @ y,
              lambda a, x, y: tj.dot(x, x)):
        for run in (f, tj.script(f)):
            found = tj.autograd.grad(run(a, x, y).square().sum(), (a, x, y), allow_unused=True)
            for k, grad in enumerate(found):
                if grad is None:
                    continue
                exact = tj.autograd.grad(
                    f(*(z.double() for z in (a, x, y))).square().sum(), (a, x, y)[k])[0]
                np.testing.assert_allclose(grad.numpy(), exact.numpy(), rtol=2e-4, atol=2e-4)
