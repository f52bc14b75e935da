"""Special functions: the gradients that PyTorch computes less exactly, dtypes, errors, in place."""

import pytest

import tracejit
from tracejit.autograd import gradcheck, gradgradcheck
from tracejit.jit import script

POSITIVE = [0.5, 1.25, 2.0]


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_gradients_of_polygamma(n):
    x = tracejit.tensor(POSITIVE, dtype=tracejit.float64, requires_grad=True)
    assert gradcheck(lambda x: tracejit.polygamma(n, x), (x,))
    assert gradgradcheck(lambda x: x.polygamma(n), (x,))


def test_integers_are_floating_numbers():
    x = tracejit.tensor([1, 2])
    for call in (tracejit.lgamma, tracejit.special.entr, tracejit.special.i0e,
                 lambda x: tracejit.polygamma(1, x), lambda x: tracejit.mvlgamma(x + 1, 2)):
        assert call(x).dtype is tracejit.float32


def test_in_place():
    x = tracejit.tensor(POSITIVE, requires_grad=True)
    y = x * 1
    assert y.polygamma_(1) is y
    y.sum().backward()
    assert tracejit.allclose(x.grad, tracejit.polygamma(2, tracejit.tensor(POSITIVE)))
    for name, arguments in (("lgamma", ()), ("digamma", ()), ("erfinv", ()), ("i0", ()),
                            ("sinc", ()), ("logit", (0.1,)), ("mvlgamma", (1,)), ("xlogy", (2.0,)),
                            ("igamma", (tracejit.ones(3),)), ("igammac", (tracejit.ones(3),))):
        x = tracejit.tensor(POSITIVE)
        want = getattr(x, name)(*arguments)
        assert tracejit.allclose(getattr(x, f"{name}_")(*arguments), want, equal_nan=True)
        assert tracejit.allclose(x, want, equal_nan=True), name


@pytest.mark.parametrize("call, error, text", [
    (lambda x: tracejit.polygamma(-1, x), RuntimeError,
     "polygamma(n, x) does not support negative n."),
    (lambda x: tracejit.mvlgamma(x, 0), RuntimeError, "p has to be greater than or equal to 1"),
    (lambda x: tracejit.mvlgamma(x > 0, 1), RuntimeError,
     "The input tensor may not be a boolean tensor."),
    (lambda x: tracejit.special.bessel_j0(x.half()), NotImplementedError,
     "\"bessel_j0_cpu\" not implemented for 'Half'"),
    (lambda x: tracejit.igamma(x.long(), x.long()), NotImplementedError,
     "\"igamma_cpu\" not implemented for 'Long'"),
    (lambda x: tracejit.logaddexp(x.long(), x.long()), NotImplementedError,
     "\"logaddexp_cpu\" not implemented for 'Long'"),
])  # fmt: skip
@pytest.mark.parametrize("way", [lambda f: f, script], ids=["eager", "script"])
def test_errors(call, error, text, way):
    with pytest.raises(error) as raised:
        way(call)(tracejit.tensor(POSITIVE))
    assert str(raised.value) == text


@pytest.mark.parametrize("way", [lambda f: f, script], ids=["eager", "script"])
def test_a_derivative_that_nobody_knows_is_refused(way):
    a = tracejit.tensor(POSITIVE, requires_grad=True)
    result = way(lambda a: tracejit.igamma(a, tracejit.ones(3)).sum())(a)
    with pytest.raises(NotImplementedError, match="the derivative for 'igamma: input' is not"):
        result.backward()


def test_incomplete_gammas_of_what_is_no_number():
    """One operand may decide alone, as in PyTorch."""
    nan, inf = float("nan"), float("inf")
    a, x = tracejit.tensor([nan, nan, inf, nan, 1.0]), tracejit.tensor([0.0, inf, nan, 1.0, nan])
    assert str(tracejit.igamma(a, x).tolist()) == "[0.0, 1.0, 0.0, nan, nan]"
    assert str(tracejit.igammac(a, x).tolist()) == "[1.0, 0.0, 1.0, nan, nan]"
