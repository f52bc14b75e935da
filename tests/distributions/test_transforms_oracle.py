"""Transforms, constraints, transformed and independent distributions beside PyTorch's."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import tracejit
from tests.distributions.cases import SIMPLEX, above, chances, counts, some

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

X, LOC, SCALE = some(4, 2, 3), some(3), above(3)
SQUARES = some(2, 3, 3)


def array(t, values):
    return t.tensor(values, dtype=t.float64)


TRANSFORMS = {
    "exp": lambda t, D: D.ExpTransform(),
    "exp_inv": lambda t, D: D.ExpTransform().inv,
    "sigmoid": lambda t, D: D.SigmoidTransform(),
    "tanh": lambda t, D: D.TanhTransform(),
    "softplus": lambda t, D: D.SoftplusTransform(),
    "abs": lambda t, D: D.AbsTransform(),
    "softmax": lambda t, D: D.SoftmaxTransform(),
    "sticks": lambda t, D: D.StickBreakingTransform(),
    "power": lambda t, D: D.PowerTransform(array(t, SCALE)),
    "power_number": lambda t, D: D.PowerTransform(2),
    "affine": lambda t, D: D.AffineTransform(array(t, LOC), array(t, -SCALE)),
    "affine_number": lambda t, D: D.AffineTransform(1, -2.0),
    "affine_event": lambda t, D: D.AffineTransform(array(t, LOC), array(t, SCALE), event_dim=1),
    "reshape": lambda t, D: D.ReshapeTransform((2, 3), (6,)),
    "independent": lambda t, D: D.IndependentTransform(D.ExpTransform(), 1),
    "nothing": lambda t, D: D.identity_transform,
    "composed": lambda t, D: D.ComposeTransform([D.AffineTransform(1.0, 2.0), D.TanhTransform()]),
    "composed_event": lambda t, D: D.ComposeTransform(
        [D.ExpTransform(), D.StickBreakingTransform()]),
    "composed_inv": lambda t, D: D.ComposeTransform(
        [D.AffineTransform(1.0, 2.0), D.ExpTransform()]).inv,
    "cumulative": lambda t, D: D.CumulativeDistributionTransform(
        D.Normal(array(t, LOC), array(t, SCALE))),
    "correlations": lambda t, D: D.CorrCholeskyTransform(),
    "cat": lambda t, D: D.CatTransform(
        [D.ExpTransform(), D.AffineTransform(1.0, -2.0)], dim=-1, lengths=[1, 2]),
    "cat_event": lambda t, D: D.CatTransform(
        [D.SoftmaxTransform(), D.ExpTransform()], dim=0, lengths=[3, 1]),
    "stack": lambda t, D: D.StackTransform([D.ExpTransform(), D.TanhTransform()], dim=1),
    "cached": lambda t, D: D.AffineTransform(1.0, 2.0).with_cache(),
}  # fmt: skip
POSITIVE = {"exp_inv", "power", "power_number", "composed_inv"}


def answer(library, ask):
    try:
        return str(ask()).replace(f"{library.__name__}.", "")
    except NotImplementedError:
        return "not implemented"


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    found = []
    for t in (torch, tracejit):
        transform = TRANSFORMS[name](t, t.distributions)
        x = array(t, np.abs(X) if name in POSITIVE else X).requires_grad_()
        y = transform(x)
        numbers = [y, transform.inv(y.detach())]
        if transform.bijective:
            slope = transform.log_abs_det_jacobian(x, y)
            numbers.append(slope)
            if slope.requires_grad:
                numbers += t.autograd.grad(slope.sum(), x, allow_unused=True, retain_graph=True)
        numbers += t.autograd.grad(y.sum(), x)
        texts = [answer(t, ask) for ask in (
            lambda: transform, lambda: transform.inv, lambda: transform.domain,  # noqa: B023
            lambda: transform.codomain, lambda: transform.sign,  # noqa: B023
            lambda: transform.domain.event_dim, lambda: transform.codomain.event_dim,  # noqa: B023
            lambda: transform == TRANSFORMS[name](t, t.distributions),  # noqa: B023
            lambda: transform.inv == TRANSFORMS[name](t, t.distributions),  # noqa: B023
            lambda: tuple(transform.forward_shape((2, 3))),  # noqa: B023
            lambda: tuple(transform.inverse_shape(transform.forward_shape((2, 3)))))]  # noqa: B023
        found.append(([None if n is None else n.detach().numpy() for n in numbers], texts))
    (expected, their_texts), (numbers, texts) = found
    assert texts == their_texts
    for a, b in zip(numbers, expected, strict=True):
        if b is not None:
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)
        assert (a is None) == (b is None)


DISTRIBUTIONS = {
    "logistic": lambda t, D: D.TransformedDistribution(
        D.Uniform(t.zeros(3).double(), 1.0), [D.SigmoidTransform().inv,
                                              D.AffineTransform(array(t, LOC), array(t, SCALE))]),
    "on_simplex": lambda t, D: D.TransformedDistribution(
        D.Normal(array(t, LOC), array(t, SCALE)), D.StickBreakingTransform()),
    "wider": lambda t, D: D.TransformedDistribution(
        D.Normal(array(t, [0.0]), 1.0), [D.AffineTransform(array(t, LOC), array(t, -SCALE))]),
    "event": lambda t, D: D.TransformedDistribution(
        D.Independent(D.Normal(array(t, X[0]), 1.0), 1), [D.TanhTransform()]),
    "nothing": lambda t, D: D.TransformedDistribution(D.Normal(array(t, LOC), 1.0), []),
    "independent": lambda t, D: D.Independent(D.Normal(array(t, X[0]), 1.0), 1),
    "independent_discrete": lambda t, D: D.Independent(D.Bernoulli(logits=array(t, X[0])), 2),
    "independent_of_none": lambda t, D: D.Independent(D.Bernoulli(logits=array(t, LOC)), 0),
}  # fmt: skip


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_of_distributions(name):
    found = []
    for t in (torch, tracejit):
        d = DISTRIBUTIONS[name](t, t.distributions)
        wide = d.expand((2, *d.batch_shape))
        value = array(t, torch_sample(name))
        texts = [answer(t, ask) for ask in (
            lambda: d, lambda: d.batch_shape, lambda: d.event_shape, lambda: d.has_rsample,  # noqa: B023
            lambda: d.support, lambda: wide, lambda: wide.batch_shape,  # noqa: B023
            lambda: tuple(wide.sample((5,)).shape))]  # noqa: B023
        numbers = [d.log_prob(value), wide.log_prob(value)]
        for method in ("cdf", "icdf", "entropy"):
            try:
                arguments = {"cdf": (value,), "icdf": (value * 0 + 0.3,)}.get(method, ())
                numbers.append(getattr(d, method)(*arguments))
            except (NotImplementedError, ValueError) as error:
                texts.append(str(type(error)))
        found.append(([n.numpy() for n in numbers], texts))
    (expected, their_texts), (numbers, texts) = found
    assert texts == their_texts
    for a, b in zip(numbers, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


def torch_sample(name):
    torch.manual_seed(0)
    return DISTRIBUTIONS[name](torch, torch.distributions).sample((2,)).numpy()


CONSTRAINTS = {
    "real": lambda t, c: c.real, "positive": lambda t, c: c.positive,
    "nonnegative": lambda t, c: c.nonnegative, "less_than": lambda t, c: c.less_than(1.0),
    "greater_than": lambda t, c: c.greater_than(2.0),
    "interval": lambda t, c: c.interval(-1.0, 3.0), "unit_interval": lambda t, c: c.unit_interval,
    "half_open_interval": lambda t, c: c.half_open_interval(0.0, 2.0),
    "simplex": lambda t, c: c.simplex, "independent": lambda t, c: c.independent(c.positive, 1),
    "real_vector": lambda t, c: c.real_vector,
}  # fmt: skip
DISCRETE = {
    "boolean": lambda t, c: c.boolean, "one_hot": lambda t, c: c.one_hot,
    "nonnegative_integer": lambda t, c: c.nonnegative_integer,
    "positive_integer": lambda t, c: c.positive_integer,
    "integer_interval": lambda t, c: c.integer_interval(1, 2),
    "multinomial": lambda t, c: c.multinomial(3), "square": lambda t, c: c.square,
    "lower_triangular": lambda t, c: c.lower_triangular,
    "lower_cholesky": lambda t, c: c.lower_cholesky,
    "cat": lambda t, c: c.cat([c.positive, c.real], dim=-1, lengths=[1, 2]),
    "stack": lambda t, c: c.stack([c.positive, c.real, c.unit_interval], dim=-1),
}  # fmt: skip


@pytest.mark.parametrize("name", [*CONSTRAINTS, *DISCRETE])
def test_constraints(name):
    makes = (CONSTRAINTS | DISCRETE)[name]
    values = [X, np.abs(X), SIMPLEX, counts(2, 3), np.eye(3), chances(3, 3), np.tril(above(3, 3))]
    found = []
    for t in (torch, tracejit):
        c = makes(t, t.distributions.constraints)
        shown = [repr(c) if name not in ("cat", "stack") else "", c.is_discrete, c.event_dim]
        found.append([*shown, *(c.check(array(t, v)).tolist() for v in values)])
    assert found[1] == found[0]


MATRICES = {
    "lower_cholesky": lambda t, c: c.lower_cholesky,
    "positive_definite": lambda t, c: c.positive_definite,
    "positive_semidefinite": lambda t, c: c.positive_semidefinite,
    "corr_cholesky": lambda t, c: c.corr_cholesky,
    "cat_onto": lambda t, c: c.cat([c.positive, c.less_than(1.0)], dim=-1, lengths=[1, 2]),
    "stack_onto": lambda t, c: c.stack([c.positive, c.real], dim=1),
}  # fmt: skip


@pytest.mark.parametrize("registry", ["transform_to", "biject_to"])
@pytest.mark.parametrize("name", MATRICES)
def test_transforms_to_constraints_of_matrices_and_parts(registry, name):
    found = []
    for t in (torch, tracejit):
        D = t.distributions
        constraint = MATRICES[name](t, D.constraints)
        x = array(t, X if name in ("corr_cholesky", "cat_onto", "stack_onto") else SQUARES)
        try:
            transform = getattr(D, registry)(constraint)
        except NotImplementedError as error:
            found.append(str(error))
            continue
        y = transform(x)
        assert constraint.check(y).all()
        found.append([repr(transform).split("(")[0], y.tolist(), transform.inv(y).tolist()])
    if isinstance(found[0], list) and isinstance(found[1], list):
        assert found[1].pop(0) == found[0].pop(0)
        for a, b in zip(found[1], found[0]):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)
    else:
        assert found[1] == found[0]


@pytest.mark.parametrize("diagonal", [-3, -1, 0, 2])
def test_triangles_as_vectors_and_back(diagonal):
    utils, theirs = tracejit.distributions.utils, torch.distributions.utils
    vectors = utils.tril_matrix_to_vec(array(tracejit, SQUARES), diagonal)
    expected = theirs.tril_matrix_to_vec(array(torch, SQUARES), diagonal)
    assert vectors.tolist() == expected.tolist()
    back = utils.vec_to_tril_matrix(vectors, diagonal)
    assert back.tolist() == theirs.vec_to_tril_matrix(expected, diagonal).tolist()
    for library in (theirs, utils):
        t = torch if library is theirs else tracejit
        with pytest.raises(ValueError, match="diag .7. provided is outside .-3, 2."):
            library.tril_matrix_to_vec(array(t, SQUARES), 7)
        with pytest.raises(ValueError, match="dimension is 5 which cannot be expressed"):
            library.vec_to_tril_matrix(t.ones(5))


@pytest.mark.parametrize("registry", ["transform_to", "biject_to"])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_transforms_to_constraints(registry, name):
    found = []
    for t in (torch, tracejit):
        D = t.distributions
        transform = getattr(D, registry)(CONSTRAINTS[name](t, D.constraints))
        y = transform(array(t, X))
        assert CONSTRAINTS[name](t, D.constraints).check(y).all()
        found.append((repr(transform), y.numpy()))
    assert found[1][0] == found[0][0]
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-9)


def test_a_cached_pair_is_the_same_object():
    transform = tracejit.distributions.ExpTransform(cache_size=1)
    x = tracejit.zeros(2)
    assert transform.inv(transform(x)) is x


@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_inverse_of_an_inverse_is_the_transform(name):
    for t in (torch, tracejit):
        transform = TRANSFORMS[name](t, t.distributions)
        inverse = transform.inv
        assert inverse.inv is transform and transform.inv is inverse and inverse.inv.inv is inverse
    copied = copy.deepcopy(transform)
    assert copied.inv is not inverse and copied.inv is copied.inv.inv.inv


def test_registered_divergences_are_found_by_subclass():
    D = tracejit.distributions

    class Own(D.Normal):
        pass

    zero = tracejit.tensor(0.0)
    assert float(D.kl_divergence(Own(zero, 1.0), D.Normal(zero, 1.0))) == 0
    D.register_kl(Own, D.Normal)(lambda p, q: zero + 5)
    assert float(D.kl_divergence(Own(zero, 1.0), D.Normal(zero, 1.0))) == 5
