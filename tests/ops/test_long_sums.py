"""Sums of many floats: the error stays below the bound of docs/numerics.md, along any dimension,
in eager mode and compiled, whatever size came first."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import tracejit
from tracejit.ops.types import bfloat16, float16, float32, float64

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
@pytest.mark.parametrize("add", [name for name in ADDED if name not in ("bincount", "embedding")])
def test_halves_add_by_index_in_a_wider_type(add, kind):
    n = 20_000
    i, v = tracejit.ones(n, dtype=tracejit.int64), tracejit.ones(n, dtype=kind)
    z = tracejit.zeros(9 if add in ("index_add", "scatter_add", "index_put", "scatter_reduce")
                       else (9, 2), dtype=kind)
    added = n if z.dim() == 1 else n / 5 if "index_add" in add else n / 2
    for run in (ADDED[add], COMPILED_ADDED[add]):
        assert run(z, i, v)[1].reshape(-1)[0].item() == pytest.approx(added, rel=2**-8)


def test_infinities_and_what_overflows_on_the_way():
    inf = math.inf
    nan = math.nan
    for values, expected in (((1.0, inf), inf), ((inf, -inf), nan), ((1.0, nan), nan)):
        x = tracejit.tensor(values * 10_000, dtype=float64)
        for f in (lambda x: x.sum(), lambda x: x.view(-1, 1).sum(0).sum()):
            assert tracejit.script(f)(x).item() == pytest.approx(expected, nan_ok=True)
