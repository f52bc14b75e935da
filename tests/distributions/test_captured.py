"""Distributions in captured functions: one program, the same numbers, the same errors, nothing
stale."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit
from tracejit import distributions as D
from tracejit import nn

MODES = ["graph", "compiled"]
KINDS = {
    "Normal": lambda x: (x, x.exp()), "Laplace": lambda x: (x, x.exp()),
    "Cauchy": lambda x: (x, x.exp()), "Gumbel": lambda x: (x, x.exp()),
    "LogNormal": lambda x: (x, x.exp()), "HalfNormal": lambda x: (x.exp(),),
    "Uniform": lambda x: (x, x + 1), "Exponential": lambda x: (x.exp(),),
    "Gamma": lambda x: (x.exp(), x.exp()), "Beta": lambda x: (x.exp(), x.exp()),
    "Chi2": lambda x: (x.exp(),), "StudentT": lambda x: (x.exp(),),
    "Dirichlet": lambda x: (x.exp(),), "Bernoulli": lambda x: (x.sigmoid(),),
    "Geometric": lambda x: (x.sigmoid(),), "Poisson": lambda x: (x.exp(),),
    "Binomial": lambda x: (4, x.sigmoid()), "Categorical": lambda x: (x.exp(),),
    "NegativeBinomial": lambda x: (x.exp(), x.sigmoid()), "Weibull": lambda x: (x.exp(), x.exp()),
    "Pareto": lambda x: (x.exp(), x.exp() + 1), "InverseGamma": lambda x: (x.exp() + 1, x.exp()),
    "RelaxedOneHotCategorical": lambda x: (0.5, x.exp()),
    "Kumaraswamy": lambda x: (x.exp(), x.exp()), "FisherSnedecor": lambda x: (x.exp(), x.exp() + 2),
    "GeneralizedPareto": lambda x: (x, x.exp(), x), "LogisticNormal": lambda x: (x, x.exp()),
    "RelaxedBernoulli": lambda x: (tracejit.full_like(x, 0.5), x.sigmoid()),
    "ContinuousBernoulli": lambda x: (x.sigmoid(),),
    "LowRankMultivariateNormal": lambda x: (x, x.unsqueeze(-1), x.exp()),
    "LKJCholesky": lambda x: (3, x.exp()),
    "Wishart": lambda x: (6.0, (x.exp() + 1).diag_embed()),
    "OneHotCategorical": lambda x: (x.exp(),), "Multinomial": lambda x: (3, x.exp()),
}  # fmt: skip


def shown(function, calls):
    tracejit.manual_seed(0)
    results = [function(*call) for call in calls]
    return results, tracejit.get_rng_state().tolist()


def same(plain, calls, mode, compiles=1):
    """One program, no break; the same results and draws as plainly."""
    captured = tracejit.script(plain, mode=mode)
    (expected, drawn), (found, drawn_too) = shown(plain, calls), shown(captured, calls)
    assert drawn == drawn_too
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=2e-5, atol=1e-5)
    report = captured.report()
    assert (report.compiles, report.breaks) == (compiles, [])


def batches(*shape):
    return [(tracejit.randn(n, *shape),) for n in (3, 5, 8, 3)]


@pytest.mark.parametrize("name", KINDS)
def test_samples_and_densities(name):
    def step(x):
        d = getattr(D, name)(*KINDS[name](x))
        drawn = d.rsample((2,)) if d.has_rsample else d.sample((2,))
        return d.log_prob(drawn)

    same(step, batches(4), "graph")


@pytest.mark.parametrize("mode", MODES)
def test_a_variational_autoencoder_is_one_program(mode):
    def step_of(encoder, decoder, optimizer):
        def step(x):
            mean, spread = encoder(x).chunk(2, -1)
            posterior = D.Normal(mean, spread.exp())
            prior = D.Normal(tracejit.zeros_like(mean), tracejit.ones_like(mean))
            z = posterior.rsample()
            likelihood = D.Independent(D.Normal(decoder(z), 1.0), 1).log_prob(x)
            loss = (D.kl_divergence(posterior, prior).sum(-1) - likelihood).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        return step

    _trained(step_of, [nn.Linear(4, 6), nn.Linear(3, 4)], batches(4), mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_policy_gradient_step_is_one_program(mode):
    def step_of(policy, optimizer):
        def step(x):
            d = D.Categorical(logits=policy(x))
            action = d.sample()
            reward = (action == 1).float()
            loss = -(d.log_prob(action) * reward).mean() - 0.01 * d.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        return step

    _trained(step_of, [nn.Linear(4, 3)], batches(4), mode)


@pytest.mark.parametrize("name", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_multivariate_normals(name):
    def step(x, factor):
        matrix = factor if name == "scale_tril" else factor @ factor.mT
        d = D.MultivariateNormal(x, **{name: matrix})
        return d.log_prob(d.rsample((2,))) + d.entropy()

    factor = tracejit.tensor(np.tril(np.random.default_rng(0).uniform(1, 2, (3, 3))))
    same(step, [(x.double(), factor) for (x,) in batches(3)], "graph")


def test_mixtures():
    def step(x):
        chosen = D.Categorical(logits=x)
        d = D.MixtureSameFamily(chosen, D.Normal(x, x.exp()))
        return d.log_prob(d.sample((2,)))

    same(step, batches(4), "graph")


def _trained(step_of, layers, calls, mode):
    """The same training, plainly and captured, each on layers of its own."""
    import copy

    seen = []
    for capture in (False, True):
        own = copy.deepcopy(layers)
        parameters = [p for layer in own for p in layer.parameters()]
        step = step_of(*own, tracejit.optim.SGD(parameters, lr=0.1))
        captured = tracejit.script(step, mode=mode) if capture else step
        losses, drawn = shown(captured, calls)
        seen.append(([*losses, *parameters], drawn))
        if capture:
            report = captured.report()
            assert report.breaks == [] and report.compiles <= 2  # with gradients there, and not
    (expected, drawn), (found, drawn_too) = seen
    assert drawn == drawn_too
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_numbers_of_parameters_may_change(mode):
    def step(x, scale):
        return D.Normal(x, scale).log_prob(x + 1)

    calls = [(x, s) for (x,), s in zip(batches(4), (0.5, 0.6, 0.7, 0.8))]
    same(step, calls, mode)


@pytest.mark.parametrize("mode", MODES)
def test_errors_of_values_are_those_of_the_plain_function(mode):
    def step(x, scale):
        return D.Normal(x, scale).log_prob(x)

    captured = tracejit.script(step, mode=mode)
    x, good = tracejit.zeros(2), tracejit.ones(2)
    bad = [(x, -good), (x / 0, good), (x, good * 0)]
    for first in (False, True):  # the first call, and a replay
        if first:
            captured(x, good)
        for arguments in bad:
            with pytest.raises(ValueError, match="to satisfy|within the support") as plain:
                step(*arguments)
            with pytest.raises(ValueError, match="to satisfy|within the support") as replayed:
                captured(*arguments)
            assert str(plain.value) == str(replayed.value)


def test_a_distribution_outside_is_read_at_each_call():
    prior = D.Normal(tracejit.zeros(3), tracejit.ones(3))

    def step(x):
        return prior.log_prob(x) + prior.mean

    captured, x = tracejit.script(step, mode="graph"), tracejit.ones(3)
    for change in (lambda: None, lambda: None, lambda: prior.loc.add_(1),
                   lambda: setattr(prior, "loc", tracejit.full((3,), 7.0)),
                   lambda: setattr(prior, "scale", tracejit.full((3,), 2.0))):  # fmt: skip
        change()
        np.testing.assert_array_equal(captured(x).numpy(), step(x).numpy())
    assert captured.report().breaks == []


@pytest.mark.filterwarnings("error")
def test_whether_arguments_are_checked_is_guarded():
    def step(x):
        return D.Normal(x, 1.0).log_prob(x)

    bad, good = tracejit.tensor([tracejit.nan]), tracejit.zeros(1)
    for start in (True, False):
        captured = tracejit.script(step, mode="graph")
        try:
            for checked in (start, not start, start):
                D.Distribution.set_default_validate_args(checked)
                captured(good)
                if checked:
                    with pytest.raises(ValueError, match="constraint Real"):
                        captured(bad)
                else:
                    assert captured(bad).isnan().all()
        finally:
            D.Distribution.set_default_validate_args(True)


def test_an_expanded_distribution_leaves_the_call():
    base = D.Normal(tracejit.zeros(3), tracejit.ones(3))
    captured = tracejit.script(lambda d: d.expand((2, 3)), mode="graph")
    for loc in (0.0, 0.0, 5.0):
        base.loc = tracejit.full((3,), loc)
        assert captured(base).loc.tolist() == [[loc] * 3] * 2


def test_a_branch_may_check_and_draw_nothing_else():
    def step(x, c):
        y = x
        if c.sum() > 0:
            y = D.Normal(x, 1.0).log_prob(x)
        return y

    captured = tracejit.script(step, mode="graph")
    for sign in (1.0, -1.0, 1.0):
        x, c = tracejit.zeros(3), tracejit.full((1,), sign)
        np.testing.assert_allclose(captured(x, c).numpy(), step(x, c).numpy())


@pytest.mark.parametrize("mode", MODES)
def test_a_parameter_that_a_call_computes_is_kept_outside(mode):
    """Reading `logits` in a captured call sets it on the caller's object, once."""
    def program(jit):
        leaf = tracejit.tensor([0.2, 0.7], requires_grad=True)
        kept = D.Bernoulli(probs=leaf)

        @jit
        def f(d, x):
            return (d.logits * x).sum(), d.logits is d.logits, D.Categorical(logits=x).probs

        told = []
        for d in (kept, kept, kept, D.Bernoulli(probs=leaf * 0.5), D.Bernoulli(logits=leaf)):
            result, same, made = f(d, tracejit.ones(2))
            told += [result.item(), same, made.tolist(), sorted(vars(d)), d.logits is d.logits]
        kept.logits = tracejit.zeros(2)
        told.append(f(kept, tracejit.ones(2))[0].item())
        del kept.logits
        with tracejit.no_grad():
            leaf.copy_(tracejit.tensor([0.4, 0.9]))
        told.append(f(kept, tracejit.ones(2))[0].item())
        gradient, = tracejit.autograd.grad(f(kept, tracejit.ones(2))[0], leaf)
        return [*told, gradient.tolist()]

    plain = program(lambda f: f)
    captured = program(lambda f: tracejit.script(f, mode=mode))
    for mine, expected in zip(captured, plain, strict=True):
        if isinstance(expected, float) or np.asarray(expected).dtype.kind == "f":
            np.testing.assert_allclose(mine, expected, rtol=1e-6)
        else:
            assert mine == expected
