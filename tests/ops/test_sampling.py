"""Distributions: chi-square and Kolmogorov-Smirnov tests at fixed seeds, and sampling by weights.

A test of this kind rejects at 1e-4; seeds are fixed, so it passes always or never.
"""

import itertools

import numpy as np
import pytest
from scipy import stats

import tracejit as tj
from tracejit.core.ops.types import bfloat16, float16, float32, float64, int64

COUNT = 20000
REJECT = 1e-4


@pytest.fixture(autouse=True)
def seeded():
    tj.manual_seed(1234)


CONTINUOUS = [
    ("rand", lambda d: tj.rand(COUNT, dtype=d), stats.uniform()),
    ("randn", lambda d: tj.randn(COUNT, dtype=d), stats.norm()),
    ("rand_like", lambda d: tj.rand_like(tj.zeros(COUNT, dtype=d)), stats.uniform()),
    ("uniform_", lambda d: tj.zeros(COUNT, dtype=d).uniform_(-1, 3), stats.uniform(-1, 4)),
    ("normal_", lambda d: tj.zeros(COUNT, dtype=d).normal_(1, 2), stats.norm(1, 2)),
    ("normal", lambda d: tj.normal(tj.ones(COUNT, dtype=d), 2.0), stats.norm(1, 2)),
    ("exponential_", lambda d: tj.zeros(COUNT, dtype=d).exponential_(2.5), stats.expon(0, 0.4)),
    ("cauchy_", lambda d: tj.zeros(COUNT, dtype=d).cauchy_(1, 0.5), stats.cauchy(1, 0.5)),
    ("log_normal_", lambda d: tj.zeros(COUNT, dtype=d).log_normal_(0.5, 0.7),
     stats.lognorm(0.7, 0, np.exp(0.5))),
]  # fmt: skip


@pytest.mark.parametrize("d", [float32, float64])
@pytest.mark.parametrize("draw, law", [row[1:] for row in CONTINUOUS],
                         ids=[row[0] for row in CONTINUOUS])
def test_distributions(draw, law, d):
    x = draw(d)
    assert x.dtype is d
    assert stats.kstest(x.double().numpy(), law.cdf).pvalue > REJECT


def fits(counts, chances):
    """Whether counts are what draws with these chances give; no count where there is no chance."""
    counts, chances = np.asarray(counts, float), np.asarray(chances, float)
    assert not counts[chances == 0].any()
    known = chances > 0
    expected = chances[known] / chances.sum() * counts.sum()
    return stats.chisquare(counts[known], expected).pvalue > REJECT


def counted(x, size):
    return np.bincount(np.asarray(x.tolist(), int).reshape(-1), minlength=size)


def test_integers():
    assert fits(counted(tj.randint(3, 10, (COUNT,)) - 3, 7), np.ones(7))
    assert fits(counted(tj.zeros(COUNT).random_(6), 6), np.ones(6))
    assert fits(counted(tj.randint_like(tj.zeros(COUNT), 5), 5), np.ones(5))
    high = tj.zeros(COUNT, dtype=int64).random_() >> 60
    assert fits(counted(high, 8), np.ones(8))


def test_coins():
    assert fits(counted(tj.zeros(COUNT).bernoulli_(0.3), 2), [0.7, 0.3])
    assert fits(counted(tj.bernoulli(tj.full((COUNT,), 0.85, dtype=float64)), 2), [0.15, 0.85])
    kept = tj.nn.functional.dropout(tj.ones(COUNT), 0.2) != 0
    assert fits(counted(kept, 2), [0.2, 0.8])


def test_permutations_are_equally_likely():
    found = dict.fromkeys(itertools.permutations(range(4)), 0)
    for _ in range(6000):
        found[tuple(tj.randperm(4).tolist())] += 1
    assert fits(list(found.values()), np.ones(24))


def test_counts():
    law = stats.geom(0.3)
    x = counted(tj.zeros(COUNT).geometric_(0.3), 0)
    assert x[0] == 0 and fits([*x[1:12], x[12:].sum()], [*law.pmf(range(1, 12)), law.sf(11)])
    law = stats.poisson(4.0)
    x = counted(tj.poisson(tj.full((COUNT,), 4.0)), 12)
    assert fits([*x[:11], x[11:].sum()], [*law.pmf(range(11)), law.sf(10)])
    x = counted(tj.binomial(tj.full((COUNT,), 8.0), tj.tensor(0.4)), 9)
    assert fits(x, stats.binom(8, 0.4).pmf(range(9)))


WEIGHTS = [0.0, 3.0, 1.0, 0.0, 6.0]


@pytest.mark.parametrize("d", [float32, float64, float16, bfloat16])
def test_multinomial_with_replacement(d):
    x = tj.multinomial(tj.tensor(WEIGHTS, dtype=d), COUNT, replacement=True)
    assert x.dtype is int64 and fits(counted(x, 5), WEIGHTS)
    rows = tj.tensor([WEIGHTS, WEIGHTS[::-1]], dtype=d)
    x = tj.multinomial(rows, COUNT, replacement=True)
    assert x.shape == (2, COUNT)
    assert fits(counted(x[0], 5), WEIGHTS) and fits(counted(x[1], 5), WEIGHTS[::-1])


def test_multinomial_without_replacement_draws_one_after_the_other():
    """The chance of (i, j) is p_i p_j / (1 - p_i)."""
    p = np.array([0.1, 0.2, 0.3, 0.4])
    x = tj.multinomial(tj.tensor(p).expand(COUNT, 4), 2).numpy()
    assert (x[:, 0] != x[:, 1]).all()
    chances = p[:, None] * p / (1 - p[:, None]) * (1 - np.eye(4))
    counts = np.zeros((4, 4))
    np.add.at(counts, (x[:, 0], x[:, 1]), 1)
    assert fits(counts.reshape(-1), chances.reshape(-1))


def test_multinomial_takes_what_has_no_weight_last():
    for _ in range(50):
        assert tj.multinomial(tj.tensor([1.0, 0.0, 2.0]), 3).tolist()[2] == 1
    assert sorted(tj.multinomial(tj.ones(6), 6).tolist()) == list(range(6))
    assert tj.multinomial(tj.ones(0, 3), 2).shape == (0, 2)


def test_binomial_takes_odd_parameters_as_pytorch_does():
    count, prob = tj.tensor([10.0, -1.0, 5.0, float("nan")]), tj.tensor([1.5, 0.5, -0.5, 0.5])
    assert tj.binomial(count, prob)[:3].tolist() == [10.0, 0.0, 0.0]


DRAWS = [
    lambda x: x.clone().uniform_(0.1, 0.37), lambda x: x.clone().normal_(0.3, 1.7),
    lambda x: x.clone().exponential_(2.0), lambda x: x.clone().cauchy_(1, 2.5),
    lambda x: x.clone().geometric_(0.3), lambda x: x.clone().log_normal_(0.1, 0.3),
    lambda x: tj.normal(x, x.abs()), lambda x: tj.poisson(x.abs()), tj.rand_like, tj.randn_like,
    lambda x: tj.bernoulli(x.abs().clamp(0, 1)), lambda x: tj.multinomial(x.abs() + 1, 5),
    lambda x: tj.nn.functional.dropout(x, 0.4), lambda x: tj.randint(0, x.shape[0], (9,)),
    lambda x: tj.randperm(x.shape[0]), lambda x: x.clone().random_(2, 9),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["graph", "python", "compiled"])
@pytest.mark.parametrize("d", [float32, float64, float16])
def test_every_mode_draws_the_same_bits(mode, d):
    count = 37 if mode == "python" else 3001
    compiled = tj.script(lambda x: tuple(draw(x) for draw in DRAWS), mode=mode)
    x = tj.linspace(-2, 3, count).to(d)
    tj.manual_seed(5)
    want = [tuple(draw(x) for draw in DRAWS) for _ in range(3)]
    state = tj.get_rng_state()
    tj.manual_seed(5)
    for expected in want:
        for k, (g, w) in enumerate(zip(compiled(x), expected)):
            assert g.dtype is w.dtype and bool((g == w).all()), k
    assert tj.get_rng_state().tolist() == state.tolist()
    assert compiled.report().compiles == 1 and not compiled.report().breaks


def test_thread_counts_do_not_matter():
    def draws():
        x = tj.zeros(300_001)
        return [x.normal_(1, 2).clone(), x.exponential_(3).clone(), tj.rand(100_003)]

    compiled, threads, found = tj.script(draws), tj.get_num_threads(), []
    try:
        for count in (1, 2):
            tj.set_num_threads(count)
            tj.manual_seed(9)
            found += [draws(), compiled()]
            tj.manual_seed(9)
            found += [compiled(), compiled()]
    finally:
        tj.set_num_threads(threads)
    for first, second in ((0, 2), (1, 3), (0, 4), (1, 5), (2, 6), (3, 7)):
        assert all(bool((a == b).all()) for a, b in zip(found[first], found[second]))


def test_a_program_serves_every_range_of_integers():
    draw = tj.script(lambda x: tj.randint(0, x.shape[0], (4,)))
    tj.manual_seed(3)
    got = [draw(tj.ones(n)).tolist() for n in (5, 7, 90, 1000)]
    tj.manual_seed(3)
    assert got == [tj.randint(0, n, (4,)).tolist() for n in (5, 7, 90, 1000)]
    assert draw.report().compiles == 1
