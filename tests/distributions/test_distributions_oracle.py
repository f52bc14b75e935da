"""Distributions beside PyTorch's: densities, moments, gradients, shapes, samples, divergences."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit
from tests.distributions.cases import CASES, OF_DEFAULT_DTYPE, Case
from tracejit import distributions
from tracejit.core.ops.gamma_sampling import _derivative

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def made(library, case: Case):
    """The distribution, and its parameters as leaves."""
    tensors = {
        name: library.tensor(v, requires_grad=True) if isinstance(v, np.ndarray) else v
        for name, v in case.arguments.items()
    }
    return getattr(library.distributions, case.name)(**tensors), [
        t for t in tensors.values() if isinstance(t, library.Tensor)
    ]


def values_and_gradients(library, case: Case) -> dict[str, np.ndarray]:
    """What each method gives, and the gradients of its sum."""
    found = {}
    for name in ("log_prob", *case.methods):
        d, leaves = made(library, case)
        value = library.tensor(case.values, requires_grad=True)
        if name == "icdf":
            result = d.icdf(d.cdf(value.detach()).detach())
        elif name in ("log_prob", "cdf"):
            result = getattr(d, name)(value)
        else:
            result = getattr(d, name)
            result = result() if callable(result) else result
        found[name] = result.detach().numpy()
        if result.requires_grad:
            wanted = [*leaves, value]
            grads = library.autograd.grad(result.sum(), wanted, allow_unused=True)
            for k, g in enumerate(grads):
                if g is not None and not (k == len(leaves) and case.name in DISCRETE):
                    found[f"{name}.grad{k}"] = g.numpy()
    return found


DISCRETE = {"Bernoulli", "Geometric", "Poisson", "Binomial", "Categorical", "OneHotCategorical",
            "OneHotCategoricalStraightThrough", "Multinomial", "NegativeBinomial"}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_values_and_gradients(case):
    mine, theirs = (values_and_gradients(library, case) for library in (tracejit, torch))
    assert mine.keys() == theirs.keys()
    for name, expected in theirs.items():
        assert mine[name].dtype == expected.dtype, name
        # PyTorch computes Bessel functions by polynomials of single precision.
        rtol = 1e-5 if case.name == "VonMises" else 1e-7
        np.testing.assert_allclose(mine[name], expected, rtol=rtol, atol=1e-9, err_msg=name)


def test_generalized_pareto():
    mine = values_and_gradients(tracejit, OF_DEFAULT_DTYPE)
    torch.set_default_dtype(torch.float64)
    try:
        theirs = values_and_gradients(torch, OF_DEFAULT_DTYPE)
    finally:
        torch.set_default_dtype(torch.float32)
    assert mine.keys() == theirs.keys()
    for name, expected in theirs.items():
        np.testing.assert_allclose(mine[name], expected, rtol=1e-7, atol=1e-9, err_msg=name)
    d = made(tracejit, OF_DEFAULT_DTYPE)[0]
    below = d.cdf(d.sample((20_000,))).detach().numpy()
    np.testing.assert_allclose(below.mean(0), 0.5, atol=0.01)


def test_angles_point_where_they_should():
    tracejit.manual_seed(0)
    d = distributions.VonMises(tracejit.tensor([0.5, -3.0]), tracejit.tensor([0.8, 9.0]))
    x = d.sample((20_000,))
    assert bool(((x >= -np.pi) & (x < np.pi)).all())
    np.testing.assert_allclose((x - d.loc).cos().mean(0).numpy(), 1 - d.variance.numpy(), atol=0.02)
    np.testing.assert_allclose((x - d.loc).sin().mean(0).numpy(), 0, atol=0.02)


def test_factors_of_correlations_are_as_likely_as_they_should():
    """Elements of uniform correlation matrices of n dimensions are those of Beta(n/2, n/2)."""
    tracejit.manual_seed(0)
    factors = distributions.LKJCholesky(4, 1.0).sample((20_000,))
    matrices = factors @ factors.mT
    np.testing.assert_allclose(matrices.diagonal(dim1=-2, dim2=-1).numpy(), 1, atol=1e-5)
    for one, other in ((1, 0), (3, 1), (3, 2)):
        x = matrices[:, one, other].numpy()
        np.testing.assert_allclose([x.mean(), x.var()], [0, 1 / 5], atol=0.01)


def test_entropy_of_an_exponential_family():
    class Rate(distributions.ExponentialFamily):
        _mean_carrier_measure = 0

        def __init__(self, rate):
            self.rate = rate
            super().__init__(rate.shape, validate_args=False)

        _natural_params = property(lambda self: (-self.rate,))

        def _log_normalizer(self, x):
            return -(-x).log()

    one, other = tracejit.tensor([0.5, 2.0]), tracejit.tensor([1.5, 3.0])
    mine, known = (
        [kind(one).entropy(), distributions.kl_divergence(kind(one), kind(other))]
        for kind in (Rate, distributions.Exponential))
    for a, b in zip(mine, known):
        np.testing.assert_allclose(a.detach().numpy(), b.numpy(), rtol=1e-6)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_samples_of_small_concentrations_are_near_the_ends_and_never_there(kind):
    tracejit.manual_seed(0)
    small = tracejit.tensor(0.01, dtype=getattr(tracejit, kind), requires_grad=True)
    drawn = distributions.Beta(small, small).rsample((20_000,))
    assert drawn.dtype is small.dtype and 0 < drawn.min() and drawn.max() < 1
    for near in (drawn < 0.1, drawn > 0.9):
        assert abs(near.double().mean() - 0.5) < 0.02
    drawn.mean().backward()
    assert small.grad.isfinite()


def test_a_wishart_distribution_of_whole_degrees_of_freedom():
    for library in (torch, tracejit):
        d = library.distributions.Wishart(library.tensor(3), library.eye(2))
        assert d.sample((4,)).shape == (4, 2, 2) and d.sample().dtype is library.float32


def test_a_lazy_property_is_computed_once_and_has_a_gradient():
    for library in (torch, tracejit):
        class Odds:
            scale = library.ones(1, requires_grad=True)

            @library.distributions.utils.lazy_property
            def probs(self):
                return self.scale * 2

        odds = Odds()
        with library.no_grad():
            odds.probs.backward()
        assert odds.probs is odds.probs and Odds.scale.grad.tolist() == [2.0]


LAZY = [
    ("Bernoulli", "probs", [0.2, 0.7], ["logits"]), ("Bernoulli", "logits", [0.5, 1.0], ["probs"]),
    ("Geometric", "probs", [0.2, 0.7], ["logits"]), ("Geometric", "logits", [0.5, 1.0], ["probs"]),
    ("Categorical", "probs", [0.2, 0.7], ["logits"]),
    ("Categorical", "logits", [0.5, 1.0], ["probs"]),
    ("ContinuousBernoulli", "probs", [0.2, 0.7], ["logits"]),
    ("ContinuousBernoulli", "logits", [0.5, 1.0], ["probs"]),
    ("Binomial", "probs", [0.2, 0.7], ["logits"]), ("Binomial", "logits", [0.5, 1.0], ["probs"]),
    ("NegativeBinomial", "probs", [0.2, 0.7], ["logits"]),
    ("NegativeBinomial", "logits", [0.5, 1.0], ["probs"]),
    ("MultivariateNormal", "covariance_matrix", [[2.0, 0.5], [0.5, 1.0]],
     ["scale_tril", "precision_matrix"]),
    ("MultivariateNormal", "precision_matrix", [[2.0, 0.5], [0.5, 1.0]],
     ["scale_tril", "covariance_matrix"]),
    ("Wishart", "covariance_matrix", [[2.0, 0.5], [0.5, 1.0]], ["scale_tril", "precision_matrix"]),
    ("LowRankMultivariateNormal", "cov_diag", [1.0, 2.0],
     ["variance", "scale_tril", "covariance_matrix", "precision_matrix"]),
]  # fmt: skip
BESIDE = {"Binomial": lambda t: {"total_count": 3},
          "NegativeBinomial": lambda t: {"total_count": 3},
          "MultivariateNormal": lambda t: {"loc": t.zeros(2)},
          "Wishart": lambda t: {"df": t.tensor(3.0)},
          "LowRankMultivariateNormal": lambda t: {
              "loc": t.zeros(2), "cov_factor": t.ones(2, 1)}}  # fmt: skip


@pytest.mark.parametrize(("name", "given", "value", "computed"), LAZY)
def test_computed_parameters_are_kept(name, given, value, computed):
    """As `lazy_property` says: one tensor from the first read on, with a gradient even under
    no_grad; a change of what it was computed from is not seen by it."""
    shown = []
    for library in (torch, tracejit):
        leaf = library.tensor(value, requires_grad=True)
        beside = BESIDE.get(name, lambda library: {})(library)
        d = getattr(library.distributions, name)(**beside, **{given: leaf})
        told = [repr(d), [n in vars(d) for n in computed]]
        for n in computed:
            with library.no_grad():
                kept = getattr(d, n)
            assert getattr(d, n) is kept and vars(d)[n] is kept and kept.requires_grad
            told.append(library.autograd.grad(kept.sum(), leaf, retain_graph=True)[0].numpy())
        told += [repr(d)]
        with library.no_grad():
            leaf.mul_(0.5)
        told += [getattr(d, n).detach().numpy() for n in computed]
        assert all(n in vars(d) for n in computed)
        shown.append(told)
    for theirs, mine in zip(*shown):
        if isinstance(theirs, str):
            # a Wishart computes its precision from the factor it was given or made
            assert mine.replace("tracejit.", "torch.") == theirs or name == "Wishart"
        else:
            np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=1e-6)


def described(library, d) -> list:
    texts = [repr(d), d.batch_shape, d.event_shape, d.support, d.has_rsample,
             d.has_enumerate_support, d.support.is_discrete, d.support.event_dim,
             dict(d.arg_constraints)]  # fmt: skip
    return [str(x).replace(f"{library.__name__}.", "") for x in texts]


# PyTorch cannot sample from a Wishart distribution that was expanded.
@pytest.mark.parametrize("case", [c for c in CASES if c.name != "Wishart"],
                         ids=lambda case: case.id)  # fmt: skip
def test_shapes_expansion_and_texts(case):
    mine, theirs = made(tracejit, case)[0], made(torch, case)[0]
    assert described(tracejit, mine) == described(torch, theirs)
    lead = (4, 1, *tuple(theirs.batch_shape))
    wide, their_wide = mine.expand(lead), theirs.expand(torch.Size(lead))
    assert described(tracejit, wide) == described(torch, their_wide)
    for shape in ((), (5,), (2, 3)):
        for one, other in ((mine, theirs), (wide, their_wide)):
            a, b = one.sample(shape), other.sample(shape)
            assert tuple(a.shape) == tuple(b.shape), shape
            assert str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1]
            assert not a.requires_grad
            one.log_prob(a)
    value = tracejit.tensor(case.values)
    np.testing.assert_allclose(
        wide.log_prob(value).detach().numpy(),
        their_wide.log_prob(torch.tensor(case.values)).detach().numpy(), rtol=1e-7, atol=1e-9)
    if theirs.has_enumerate_support:
        for expand in (True, False):
            np.testing.assert_array_equal(mine.enumerate_support(expand).numpy(),
                                          theirs.enumerate_support(expand).numpy())


HEAVY = {"Cauchy", "HalfCauchy", "Categorical"}
WITHOUT_MOMENTS = {"RelaxedOneHotCategorical", "RelaxedBernoulli", "LogisticNormal",
                   "LKJCholesky", "VonMises"}


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.name not in WITHOUT_MOMENTS], ids=lambda case: case.id
)
def test_samples_follow_their_distribution(case):
    tracejit.manual_seed(0)
    d = made(tracejit, case)[0]
    n = 20_000
    drawn = d.sample((n,)).numpy()
    assert (distributions.Independent(d, 0).support.check(tracejit.tensor(drawn))).all()
    if case.name in HEAVY:
        expected = np.stack([d.log_prob(tracejit.tensor(float(k))).exp().detach().numpy()
                             for k in range(3)]) if case.name == "Categorical" else None
        if expected is not None:
            found = np.stack([(drawn == k).mean(0) for k in range(3)])
            np.testing.assert_allclose(found, expected, atol=0.02)
        else:
            below = d.cdf(tracejit.tensor(drawn)).detach().numpy()
            np.testing.assert_allclose(below.mean(0), 0.5, atol=0.01)
            np.testing.assert_allclose(below.var(0), 1 / 12, atol=0.005)
        return
    mean, deviation = d.mean.detach().numpy(), np.sqrt(d.variance.detach().numpy())
    finite = np.isfinite(deviation)
    error = np.abs(drawn.mean(0) - mean)[finite]
    assert (error <= 5 * deviation[finite] / np.sqrt(n) + 1e-12).all()


def cases(*names: str) -> list[Case]:
    return [case for case in CASES if case.name in names]


QUANTILES = cases("Normal", "LogNormal", "HalfNormal", "Cauchy", "Laplace", "Gumbel", "Uniform",
                  "Exponential")  # fmt: skip


@pytest.mark.parametrize("case", QUANTILES, ids=lambda case: case.id)
def test_samples_move_as_their_quantiles_do(case):
    d, leaves = made(tracejit, case)
    x = d.rsample((50,))
    through = tracejit.autograd.grad(x.sum(), leaves)
    fixed = x.detach().requires_grad_()
    below = d.cdf(fixed)
    density = tracejit.autograd.grad(below.sum(), fixed)[0]
    moved = tracejit.autograd.grad((d.cdf(fixed) / density).sum(), leaves)
    for a, b in zip(through, moved):
        np.testing.assert_allclose(a.numpy(), -b.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", cases("Gamma", "Beta", "Dirichlet", "StudentT"),
                         ids=lambda case: case.id)  # fmt: skip
def test_gradients_of_samples_are_those_of_expectations(case):
    """d E[x / (1 + |x|)] / d parameter, through samples and through their log density."""
    tracejit.manual_seed(0)
    d, leaves = made(tracejit, case)
    x = d.rsample((60_000,))
    through = tracejit.autograd.grad((x / (1 + x.abs())).sum(-1).mean(), leaves)
    weight, x = d.log_prob(x.detach()), x.detach()
    weight = weight.unsqueeze(-1) if weight.dim() < x.dim() else weight
    scored = tracejit.autograd.grad((weight * x / (1 + x.abs())).sum(-1).mean(), leaves)
    for a, b in zip(through, scored):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=0.02)


@pytest.mark.parametrize("shape", [1e-3, 0.05, 1.0, 2.5, 30.0, 199.0, 250.0, 1e5])
def test_the_derivative_of_gamma_samples(shape):
    special = pytest.importorskip("scipy.special")
    a = np.full(500, shape)
    x = np.maximum(np.random.default_rng(0).standard_gamma(a), 1e-300)
    a, x = a[x > 1e-250], x[x > 1e-250]
    below, beyond, step = special.gammainc(a, x), special.gammaincc(a, x), a * 1e-5
    ends = [
        np.where(below < 0.5, special.gammaincinv(a + h, below),
                 special.gammainccinv(a + h, beyond)) for h in (step, -step)
    ]  # fmt: skip
    np.testing.assert_allclose(_derivative(a, x), (ends[0] - ends[1]) / (2 * step), rtol=2e-5)


def divergence(library, p, q):
    try:
        return library.distributions.kl_divergence(made(library, p)[0], made(library, q)[0])
    except NotImplementedError:
        return None


ONE_OF_EACH = list({case.name: case for case in CASES}.values())


@pytest.mark.parametrize("p", ONE_OF_EACH, ids=lambda case: case.id)
def test_divergences(p):
    for q in ONE_OF_EACH:
        mine, theirs = divergence(tracejit, p, q), divergence(torch, p, q)
        assert (mine is None) == (theirs is None), (p.name, q.name)
        if theirs is None:
            continue
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-6,
                                   atol=1e-8, err_msg=f"{p.name} {q.name}")


MIXTURES = {
    "normals": lambda t, D, x: D.MixtureSameFamily(
        D.Categorical(logits=x), D.Normal(x, x.exp())),
    "vectors": lambda t, D, x: D.MixtureSameFamily(
        D.Categorical(logits=x[0]), D.Independent(D.Normal(x.T, 1.0), 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", MIXTURES)
def test_mixtures(name):
    found = []
    for t in (torch, tracejit):
        x = t.tensor(np.random.default_rng(0).normal(size=(2, 3)), requires_grad=True)
        d = MIXTURES[name](t, t.distributions, x)
        wide = d.expand((4, *d.batch_shape))
        value = d.mean.detach() + 0.5
        numbers = [d.mean, d.variance, d.log_prob(value), wide.log_prob(value)]
        if name == "normals":
            numbers.append(d.cdf(value))
        numbers += t.autograd.grad(d.log_prob(value).sum(), x)
        shapes = [tuple(e.sample((5,)).shape) for e in (d, wide)]
        assert repr(d).startswith("MixtureSameFamily(\n  Categorical(")
        texts = [str(d.support), d.batch_shape == (2,)]
        found.append(([n.detach().numpy() for n in numbers], shapes, texts))
    assert found[1][1:] == found[0][1:]
    for a, b in zip(found[1][0], found[0][0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7)


def test_samples_of_mixtures():
    tracejit.manual_seed(0)
    x = tracejit.tensor([[0.0, 3.0], [-1.0, 1.0]])
    d = distributions.MixtureSameFamily(
        distributions.Categorical(tracejit.tensor([[1.0, 3.0], [1.0, 1.0]])),
        distributions.Normal(x, 0.5))  # fmt: skip
    drawn = d.sample((20_000,))
    np.testing.assert_allclose(drawn.mean(0).numpy(), d.mean.numpy(), atol=0.05)
    np.testing.assert_allclose(drawn.var(0).numpy(), d.variance.numpy(), rtol=0.05)
