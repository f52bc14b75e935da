"""What distributions, transforms and constraints refuse, in PyTorch's words."""

from __future__ import annotations

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


@pytest.fixture(autouse=True)
def checks_of_pytorch():
    """PyTorch's compiler, where another test used it, has switched them off."""
    torch.distributions.Distribution.set_default_validate_args(True)


REFUSED = {
    "scale": lambda t, D: D.Normal(t.zeros(2), -t.ones(2)),
    "freedom": lambda t, D: D.Chi2(t.tensor([2.0, -1.0])),
    "temperature": lambda t, D: D.RelaxedBernoulli(t.tensor(1.0), probs=t.tensor(1.5)),
    "scale_of_batch": lambda t, D: D.Normal(t.zeros(2, 1), t.tensor([1.0, 0.0])),
    "nan": lambda t, D: D.Normal(t.zeros(2), 1.0).log_prob(t.tensor([float("nan"), 0.0])),
    "number": lambda t, D: D.Normal(t.zeros(2), 1.0).log_prob(3.0),
    "batch": lambda t, D: D.Normal(t.zeros(3), 1.0).log_prob(t.zeros(2)),
    "event": lambda t, D: D.Dirichlet(t.ones(3)).log_prob(t.zeros(5)),
    "neither": lambda t, D: D.Categorical(),
    "both": lambda t, D: D.Bernoulli(0.5, 0.5),
    "neither_of_geometric": lambda t, D: D.Geometric(),
    "negative": lambda t, D: D.Categorical(probs=t.tensor([-1.0, 2.0])),
    "scalar": lambda t, D: D.Categorical(t.tensor(1.0)),
    "scalar_logits": lambda t, D: D.Categorical(logits=t.tensor(1.0)),
    "scalar_concentration": lambda t, D: D.Dirichlet(t.tensor(1.0)),
    "position": lambda t, D: D.Categorical(t.ones(3)).log_prob(t.tensor(7)),
    "no_support_to_list": lambda t, D: D.Normal(0.0, 1.0).enumerate_support(),
    "no_rsample": lambda t, D: D.Categorical(t.ones(3)).rsample(),
    "no_divergence": lambda t, D: D.kl_divergence(D.Uniform(0.0, 1.0), D.Cauchy(0.0, 1.0)),
    "text": lambda t, D: D.Normal("a", 1),
    "bounds": lambda t, D: D.Uniform(2.0, 1.0),
    "outside_bounds": lambda t, D: D.Uniform(0.0, 1.0).log_prob(t.tensor(2.0)),
    "counts": lambda t, D: D.Multinomial(3, t.ones(2)).log_prob(t.tensor([3.0, 1.0])),
    "tensor_count": lambda t, D: D.Multinomial(t.tensor(3), t.ones(2)),
    "dims": lambda t, D: D.Independent(D.Normal(t.zeros(3), 1.0), 3),
    "one_hot": lambda t, D: D.OneHotCategorical(t.ones(3)).log_prob(t.ones(3)),
    "scalar_loc": lambda t, D: D.MultivariateNormal(t.tensor(0.0), t.eye(2)),
    "no_matrix": lambda t, D: D.MultivariateNormal(t.zeros(2)),
    "two_matrices": lambda t, D: D.MultivariateNormal(t.zeros(2), t.eye(2), t.eye(2)),
    "vector_matrix": lambda t, D: D.MultivariateNormal(t.zeros(2), t.ones(2)),
    "vector_precision": lambda t, D: D.MultivariateNormal(t.zeros(2), precision_matrix=t.ones(2)),
    "vector_factor": lambda t, D: D.MultivariateNormal(t.zeros(2), scale_tril=t.ones(2)),
    "indefinite": lambda t, D: D.MultivariateNormal(t.zeros(2), -t.eye(2)),
    "asymmetric": lambda t, D: D.MultivariateNormal(t.zeros(2), t.tensor([[2.0, 1], [0, 2]])),
    "no_factor": lambda t, D: D.MultivariateNormal(t.zeros(2), scale_tril=t.ones(2, 2)),
    "divergence_of_other_shapes": lambda t, D: D.kl_divergence(
        D.MultivariateNormal(t.zeros(2), t.eye(2)), D.MultivariateNormal(t.zeros(3), t.eye(3))),
    "mixture_of_what": lambda t, D: D.MixtureSameFamily(3, D.Normal(t.zeros(2), 1.0)),
    "mixture_of_no_components": lambda t, D: D.MixtureSameFamily(D.Categorical(t.ones(2)), 3),
    "mixture_of_others": lambda t, D: D.MixtureSameFamily(
        D.Categorical(t.ones(2)), D.Normal(t.zeros(3), 1.0)),
    "mixture_of_shapes": lambda t, D: D.MixtureSameFamily(
        D.Categorical(t.ones(2, 3)), D.Normal(t.zeros(4, 3), 1.0)),
    "outside_a_mixture": lambda t, D: D.MixtureSameFamily(
        D.Categorical(t.ones(2)), D.Uniform(t.zeros(2), 1.0)).log_prob(t.tensor(3.0)),
    "no_entropy": lambda t, D: D.Poisson(1.0).entropy(),
    "no_cdf": lambda t, D: D.Poisson(1.0).cdf(t.tensor(1.0)),
    "counts_that_differ": lambda t, D: D.Binomial(
        t.tensor([2.0, 3.0]), t.tensor([0.2, 0.3])).enumerate_support(),
    "never": lambda t, D: D.Geometric(t.tensor(0.0)),
    "shapes": lambda t, D: D.Normal(t.zeros(3), t.ones(2)),
    "expansion": lambda t, D: D.Normal(t.zeros(3), 1.0).expand((2,)),
    "no_transform": lambda t, D: D.TransformedDistribution(D.Normal(0.0, 1.0), 3),
    "no_transforms": lambda t, D: D.TransformedDistribution(D.Normal(0.0, 1.0), [3]),
    "few_dims": lambda t, D: D.TransformedDistribution(
        D.Normal(0.0, 1.0), D.StickBreakingTransform()),
    "cache": lambda t, D: D.ExpTransform(cache_size=2),
    "reshape": lambda t, D: D.ReshapeTransform((2, 3), (5,)),
    "registry": lambda t, D: D.transform_to(D.constraints.boolean),
    "register": lambda t, D: D.transform_to.register(3, int),
    "dependent": lambda t, D: D.Uniform.support.check(t.ones(1)),
    "default": lambda t, D: D.Distribution.set_default_validate_args(3),
    "custom_init": lambda t, D: type(
        "Own", (D.Normal,), {"__init__": lambda s: D.Normal.__init__(s, 0.0, 1.0)})().expand((2,)),
    "nothing": lambda t, D: D.Distribution(validate_args=False).sample(),
    "sample": lambda t, D: D.Normal(0.0, 1.0).sample(3),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_the_same_words(name):
    found = []
    for library in (torch, tracejit):
        with pytest.raises(Exception) as error:
            REFUSED[name](library, library.distributions)
        text = str(error.value).replace("tracejit.", "torch.")
        found.append((error.type, text.replace(", logits: torch.Size([2])", "")))  # kept in theirs
    assert found[1] == found[0]


def test_without_checks_anything_goes():
    for library in (torch, tracejit):
        d = library.distributions.Normal(library.zeros(2), -library.ones(2), validate_args=False)
        assert d.log_prob(library.tensor([float("nan"), 0.0])).isnan().all()
