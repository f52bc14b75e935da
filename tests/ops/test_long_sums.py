"""Sums of many floats: the error stays below the bound of docs/numerics.md, along any dimension,
in eager mode and compiled, whatever size came first."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import tracejit
from tracejit.core.ops.types import bfloat16, float16, float32, float64
from tracejit.nn import functional as F

UNIT = {float32: 2.0**-24, float64: 2.0**-53}
COUNTS = [10**3, 10**5, pytest.param(10**6, marks=pytest.mark.full),
          pytest.param(10**7, marks=pytest.mark.full),
          pytest.param(10**8, marks=pytest.mark.slow)]  # fmt: skip
# name -> (what is summed, how many sums there are of equal length)
SUMS = {
    "full": (lambda x: x.sum(), 1),
    "row": (lambda x: x.view(1, -1).sum(1), 1),
    "two rows": (lambda x: x.view(2, -1).sum(1), 2),
    "columns": (lambda x: x.view(-1, 2).sum(0), 2),
    "wide columns": (lambda x: x.view(-1, 20).sum(0), 20),
    "middle": (lambda x: x.view(2, -1, 5).sum(1), 10),
    "outer and inner": (lambda x: x.view(-1, 2, 5).sum((0, 2)), 2),
    "nansum": (lambda x: x.nansum(), 1),
}
COMPILED = {name: tracejit.script(f) for name, (f, _) in SUMS.items()}


def bound(dtype, n, compiled):
    return (1024 if compiled else 130 + 16 * math.log2(n)) * UNIT[dtype]


@pytest.mark.parametrize("dtype", [float32, float64], ids=["float32", "float64"])
@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("name", SUMS)
def test_the_error_of_a_sum_does_not_grow_with_its_length(name, n, dtype):
    x = tracejit.full((n,), 0.1, dtype=dtype)
    function, count = SUMS[name]
    exact = Fraction(float(x[0])) * n / count
    COMPILED[name](x[:40])  # a short one comes first
    for run, compiled in ((function, False), (COMPILED[name], True)):
        found = run(x).reshape(-1)[-1].item()
        assert abs(Fraction(found) / exact - 1) < bound(dtype, n, compiled)


@pytest.mark.parametrize("run", [lambda f: f, tracejit.script], ids=["eager", "compiled"])
@pytest.mark.parametrize("large_first", [False, True])
def test_moments_of_numbers_far_from_zero(run, large_first):
    variance, norm, mean = run(lambda x: x.var()), run(lambda x: x.norm()), run(lambda x: x.mean())
    for n in (10**6, 100) if large_first else (100, 10**6):
        x = (tracejit.arange(n) * 7919 % 10007).float() / 10007 + 1e3
        exact = x.double().numpy()
        assert variance(x).item() == pytest.approx(exact.var(ddof=1), rel=1e-3)
        assert norm(x).item() == pytest.approx(np.sqrt((exact * exact).sum()), rel=1e-4)
        assert mean(x).item() == pytest.approx(exact.mean(), rel=1e-5)


@pytest.mark.parametrize("run", [lambda f: f, tracejit.script], ids=["eager", "compiled"])
def test_statistics_and_gradients_of_long_sums(run):
    n = 300_000
    x = tracejit.full((n, 3), 0.1)
    bias = tracejit.zeros(3, requires_grad=True)
    run(lambda x, b: (x * (1 + b)).sum())(x, bias).backward()
    assert bias.grad.numpy() == pytest.approx(0.1 * n, rel=1e-4)
    assert run(lambda x: x.softmax(0))(x)[0, 0].item() == pytest.approx(1 / n, rel=1e-4)
    assert run(lambda x: x.logsumexp(0))(x)[1].item() == pytest.approx(0.1 + math.log(n), rel=1e-6)
    normed = run(lambda x: tracejit.nn.functional.batch_norm(x, None, None, training=True))
    assert abs(normed(x + x.new_tensor([0.0, 1.0, 2.0])).numpy()).max() < 0.05
    assert run(lambda x: x.cumsum(0))(x)[-1, 0].item() == pytest.approx(0.1 * n, rel=1e-6)


def test_halves_are_summed_in_a_wider_type():
    x = tracejit.full((40_000, 2), 1.0, dtype=float16)
    for run in (lambda f: f, tracejit.script):
        assert run(lambda x: x.mean(0))(x).tolist() == [1, 1]
        assert run(lambda x: x.cumsum(0))(x)[-1].tolist() == [40_000, 40_000]


@pytest.mark.parametrize("run", [lambda f: f, tracejit.script], ids=["eager", "compiled"])
@pytest.mark.parametrize("extreme", [lambda x: x.max(), lambda x: x.min(), lambda x: x.amax(0),
                                     lambda x: x.aminmax()[0]])  # fmt: skip
def test_ties_of_halves_are_counted_beyond_what_a_half_holds(extreme, run):
    x = tracejit.zeros(70_000, dtype=float16, requires_grad=True)
    run(extreme)(x).backward()
    assert x.grad[0].item() == x.grad[-1].item() == pytest.approx(1 / 70_000, rel=2e-3)


ADDED = {
    "index_add": lambda z, i, v: z.index_add(0, i, v),
    "index_add of rows": lambda z, i, v: z.index_add(0, i.view(-1, 5)[:, 0], v.view(-1, 5)[:, :2]),
    "index_add of columns": lambda z, i, v: z.T.index_add(1, i.view(-1, 5)[:, 0],
                                                          v.view(-1, 5)[:, :2].T).T,
    "scatter_add": lambda z, i, v: z.scatter_add(0, i, v),
    "scatter_add of rows": lambda z, i, v: z.scatter_add(0, i.view(-1, 2), v.view(-1, 2)),
    "index_put": lambda z, i, v: z.index_put((i,), v, accumulate=True),
    "index_add at one place": lambda z, i, v: z.index_add(0, (i[:1] * 0 + 1).expand(len(i)),
                                                          v.view(-1, 1).expand(-1, 2)),
    "index_put at one constant": lambda z, i, v: z.index_put(
        (tracejit.zeros(len(i), dtype=tracejit.int64),), v.view(-1, 1).expand(-1, 2), True),
    "scatter_reduce": lambda z, i, v: z.scatter_reduce(0, i, v, "sum"),
    "bincount": lambda z, i, v: tracejit.bincount(i, v, minlength=9),
    "embedding": lambda z, i, v: tracejit.autograd.grad(
        (tracejit.nn.functional.embedding(i, z.requires_grad_()) * v).sum(), z)[0],
}
COMPILED_ADDED = {name: tracejit.script(add) for name, add in ADDED.items()}


@pytest.mark.parametrize("n", [100, 5000, 500_000, pytest.param(10**7, marks=pytest.mark.full)])
@pytest.mark.parametrize("add", ADDED)
def test_sums_by_index(add, n):
    """Place 1 is named by seven tenths of all, and 2 to 8 by few others; the rest of `z` stays."""
    random = np.random.default_rng(0)
    places = np.where(random.random(n) < 0.7, 1, random.integers(1, 9, n))
    i, v = tracejit.tensor(places), tracejit.full((n,), 0.1)
    flat = add in ("index_add", "scatter_add", "index_put", "scatter_reduce", "bincount")
    z = tracejit.tensor(random.random((9,) if flat else (9, 2), np.float32))
    if add == "embedding":
        v = v.view(-1, 1)
    exact = ADDED[add](z.double(), i, v.double()).detach().numpy()
    COMPILED_ADDED[add](z, i[:10], v[:10])  # few of them come first
    for run, compiled in ((ADDED[add], False), (COMPILED_ADDED[add], True)):
        found = run(z, i, v).detach().numpy()
        assert (abs(found - exact) <= bound(float32, n, compiled) * abs(exact)).all()


@pytest.mark.parametrize("kind", [float16, bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("add", ["index_add", "index_add of rows", "index_add of columns",
                                 "scatter_add", "scatter_add of rows", "index_put",
                                 "scatter_reduce"])
def test_halves_add_by_index_in_a_wider_type(add, kind):
    n = 20_000
    i, v = tracejit.ones(n, dtype=tracejit.int64), tracejit.ones(n, dtype=kind)
    z = tracejit.zeros(9 if add in ("index_add", "scatter_add", "index_put", "scatter_reduce")
                       else (9, 2), dtype=kind)
    added = n if z.dim() == 1 else n / 5 if "index_add" in add else n / 2
    for run in (ADDED[add], COMPILED_ADDED[add]):
        assert run(z, i, v)[1].reshape(-1)[0].item() == pytest.approx(added, rel=2**-8)


LAID_OUT = {
    "rows": (lambda a: a, lambda b: b),
    "left turned": (lambda a: a.mT.contiguous().mT, lambda b: b),
    "right turned": (lambda a: a, lambda b: b.mT.contiguous().mT),
    "both turned": (lambda a: a.mT.contiguous().mT, lambda b: b.mT.contiguous().mT),
}


@pytest.mark.parametrize("mode", ["eager", "compiled", "python"])
@pytest.mark.parametrize("laid_out", LAID_OUT)
@pytest.mark.parametrize(("stack", "m", "n"), [((), 1, 1), ((), 1, 3), ((), 4, 1), ((), 20, 3),
                                               ((), 2, 40), ((3,), 2, 5)])  # fmt: skip
def test_products_of_long_rows_are_made_of_parts(stack, m, n, laid_out, mode):
    random, k = np.random.default_rng(0), 70_000
    a, b = (random.random(shape, np.float32) for shape in ((*stack, m, k), (*stack, k, n)))
    exact = np.matmul(a.astype(np.float64), b.astype(np.float64))
    left, right = (turn(tracejit.tensor(x)) for turn, x in zip(LAID_OUT[laid_out], (a, b)))
    product = tracejit.script(lambda a, b: a @ b, mode=mode)
    found = product(left, right).numpy()
    np.testing.assert_allclose(found, exact, rtol=1024 * UNIT[float32], atol=0)


@pytest.mark.parametrize("n", [10**5, 3 * 10**6, pytest.param(10**7, marks=pytest.mark.full),
                               pytest.param(10**8, marks=pytest.mark.slow)])  # fmt: skip
@pytest.mark.parametrize("run", [lambda f: f, tracejit.script], ids=["eager", "compiled"])
@pytest.mark.parametrize("product", [
    lambda x: x.dot(x), lambda x: x.view(1, -1) @ x, lambda x: tracejit.einsum("i,i", x, x),
    lambda x: tracejit.nn.functional.linear(x.view(1, -1), x.view(1, -1)),
    lambda x: tracejit.bmm(x.view(1, 1, -1), x.view(1, -1, 1)),
    lambda x: x.view(-1, 1).mT @ x.view(-1, 1),
])  # fmt: skip
def test_the_error_of_a_product_does_not_grow_with_its_length(product, run, n):
    found = run(product)(tracejit.full((n,), 0.1)).item()
    exact = Fraction(float(np.float32(0.1))) ** 2 * n
    assert abs(Fraction(found) / exact - 1) < 1024 * UNIT[float32]


def test_products_of_long_halves_and_complex_rows():
    for kind in (float16, bfloat16, tracejit.complex64):
        x = tracejit.full((300_000,), 0.5, dtype=kind)
        for run in (lambda f: f, tracejit.script):
            found = run(lambda x: (x * 0.01).dot(x))(x).item()
            wanted = 300_000 * complex(x[0].item() * (x[:1] * 0.01).item())
            assert abs(found / wanted - 1) < (1024 * UNIT[float32] if kind.is_complex else 2**-8)


WINDOWS = {
    "avg_pool": lambda x: F.avg_pool1d(x.view(1, 1, -1), len(x)),
    "avg_pool2d": lambda x: F.avg_pool2d(x.view(1, 1, -1, 100), (len(x) // 100, 100)),
    "adaptive_avg_pool": lambda x: F.adaptive_avg_pool1d(x.view(1, 2, -1), 1),
    "lp_pool": lambda x: F.lp_pool1d(x.view(1, 1, -1), 1.0, len(x)) / len(x),
    "interpolate": lambda x: F.interpolate(x.view(1, 1, -1), size=1, mode="area"),
    "embedding_bag": lambda x: F.embedding_bag(
        tracejit.zeros(1, len(x), dtype=tracejit.int64), x[:2].view(1, 2), mode="mean"),
    "conv1d": lambda x: _to_weight(F.conv1d, x.view(1, 1, -1), (1, 1, 3)),
    "conv1d of many": lambda x: _to_weight(F.conv1d, x.view(-1, 1, 10), (1, 1, 1)),
    "conv2d": lambda x: _to_weight(F.conv2d, x.view(2, 1, -1, 100), (20, 1, 1, 1)),
    "conv2d of groups": lambda x: _to_weight(F.conv2d, x.view(1, 2, -1, 100), (6, 1, 1, 1), 2),
    "conv_transpose1d": lambda x: _to_weight(F.conv_transpose1d, x.view(1, 1, -1), (1, 4, 1)),
}


def _to_weight(convolve, x, shape, groups=1):
    """The mean of what a weight gets back from all windows."""
    weight = tracejit.ones(shape, requires_grad=True)
    convolved = convolve(x, weight, groups=groups)
    (found,) = tracejit.autograd.grad(convolved.sum(), weight)
    return found / (convolved.numel() / convolved.shape[1])


@pytest.mark.parametrize("n", [40_000, 10**6, pytest.param(10**7, marks=pytest.mark.full)])
@pytest.mark.parametrize("run", [lambda f: f, tracejit.script], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", WINDOWS)
def test_means_of_large_windows(name, run, n):
    found = run(WINDOWS[name])(tracejit.full((n,), 0.1)).numpy()
    np.testing.assert_allclose(found, np.float32(0.1), rtol=4096 * UNIT[float32])


def test_infinities_and_what_overflows_on_the_way():
    inf = math.inf
    nan = math.nan
    for values, expected in (((1.0, inf), inf), ((inf, -inf), nan), ((1.0, nan), nan)):
        x = tracejit.tensor(values * 10_000, dtype=float64)
        for f in (lambda x: x.sum(), lambda x: x.view(-1, 1).sum(0).sum()):
            assert tracejit.script(f)(x).item() == pytest.approx(expected, nan_ok=True)


ASKED = {
    "blocks": lambda x: (x.numel() + 4095) // 4096 == 1,
    "numel": lambda x: x.numel() == 6,
    "rows": lambda x: x.shape[0] * x.shape[1] < 4096,
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_sizes_that_the_program_asked_for_leave_sums_right(asked, recwarn):
    f = tracejit.script(lambda x: x.sum() + x.mean() if asked(x) else x.max())
    assert [f(tracejit.ones(*shape)).item() for shape in ((2, 3), (2, 3), (200, 300))] == [7, 7, 1]
    assert not recwarn.list and not f.report().breaks
