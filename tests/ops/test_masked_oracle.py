"""`tracejit.masked`: what PyTorch computes of the elements that a mask keeps, its gradients and
errors, eagerly and captured."""

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle

RNG = np.random.default_rng(5)
X = RNG.normal(size=(3, 4, 2)).astype(np.float32)
MASK = RNG.uniform(size=(3, 4, 2)) > 0.4
MASK[0, :, 0] = False  # a row without any element
MASKS = {"whole": MASK, "row": MASK[1], "one": np.array([True, False]), "none": None}

REDUCTIONS = ["sum", "prod", "amax", "amin", "mean", "norm", "var", "std", "logsumexp"]
NORMALISED = ["softmax", "log_softmax", "softmin", "cumsum", "cumprod"]
OPTIONS = {
    "all": {}, "one": {"dim": 1}, "several": {"dim": (0, -1), "keepdim": True},
    "empty": {"dim": ()}, "dtype": {"dim": 0, "dtype": "float64"},
}  # fmt: skip


def kept(library, mask):
    return None if mask is None else library.tensor(mask)


def outcome(library, function, x, mask, captured=False):
    x = library.tensor(x, requires_grad=x.dtype.kind == "f")
    run = library.script(function) if captured else function
    try:
        y = run(library, x, kept(library, mask))
    except (ValueError, IndexError, RuntimeError, AssertionError) as error:
        return type(error), str(error).replace("tracejit.", "torch.")
    if y.requires_grad:
        y[y.isfinite()].square().sum().backward()
    grad = None if x.grad is None else x.grad.numpy()
    return str(y.dtype).partition(".")[2], y.detach().numpy(), grad


def alike(function, x, mask, compiled=False):
    expected = outcome(torch, function, x, mask)
    for captured in {False, compiled}:
        found = outcome(tracejit, function, x, mask, captured)
        assert len(found) == len(expected) and found[0] == expected[0]
        if len(expected) == 2:
            assert found[1] == expected[1]
            continue
        assert found[1].shape == expected[1].shape
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-5, atol=1e-6)
        assert (found[2] is None) is (expected[2] is None)
        if expected[2] is not None:
            np.testing.assert_allclose(found[2], expected[2], rtol=1e-4, atol=1e-5)


def called(name, options):
    def call(t, x, mask):
        given = {k: getattr(t, v) if k == "dtype" else v for k, v in options.items()}
        return getattr(t.masked, name)(x, mask=mask, **given)

    return call


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, options, mask):
    captured = mask == "row" and options == "one"
    alike(called(name, OPTIONS[options]), X, MASKS[mask], captured)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("name", NORMALISED)
def test_normalised(name, dim, mask):
    alike(called(name, {"dim": dim}), X, MASKS[mask], mask == "row" and dim == 0)


OTHERS = {
    "argmax": lambda t, x, m: t.masked.argmax(x, 1, mask=m),
    "argmin": lambda t, x, m: t.masked.argmin(x, dtype=t.int64, mask=m),
    "argmin kept": lambda t, x, m: t.masked.argmin(x, -1, keepdim=True, mask=m),
    "median": lambda t, x, m: t.masked.median(x, 1, mask=m),
    "median kept": lambda t, x, m: t.masked.median(x, keepdim=True, mask=m),
    "norm of ones": lambda t, x, m: t.masked.norm(x, 1, 1, mask=m),
    "least norm": lambda t, x, m: t.masked.norm(x, -float("inf"), 1, mask=m),
    "harmonic norm": lambda t, x, m: t.masked.norm(x, -1, 1, mask=m),
    "normalize": lambda t, x, m: t.masked.normalize(x, 2.0, 1, mask=m),
    "normalize to 1": lambda t, x, m: t.masked.normalize(x, 1.0, 0, eps=9.0, mask=m),
    "var biased": lambda t, x, m: t.masked.var(x, 1, False, mask=m),
    "var corrected": lambda t, x, m: t.masked.var(x, 1, correction=2, mask=m),
    "std corrected": lambda t, x, m: t.masked.std(x, (0, 1), correction=0, mask=m),
    "logaddexp": lambda t, x, m: t.masked.logaddexp(x, x * 2, input_mask=m, other_mask=None),
    "two dims": lambda t, x, m: t.masked.sum(x, (1, 1), mask=m),
    "no dim": lambda t, x, m: t.masked.sum(x, 3, mask=m),
    "both": lambda t, x, m: t.masked.var(x, 1, True, correction=1, mask=m),
}


@pytest.mark.parametrize("mask", ["whole", "none"])
@pytest.mark.parametrize("name", OTHERS)
def test_others(name, mask):
    alike(OTHERS[name], X, MASKS[mask], mask == "whole")


OF_INTEGERS = ["sum", "prod", "amax", "amin", "argmax", "mean", "var", "std", "median"]
KINDS = [*((name, kind) for name in OF_INTEGERS for kind in ("int64", "uint8")),
         *((name, "bool") for name in ("sum", "prod", "amax", "amin", "mean"))]  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_integers(name, kind):
    values = (np.abs(X) * 3).astype(kind)
    alike(called(name, {"dim": 1}), values, MASK)


def test_a_mask_with_more_dimensions_is_refused():
    alike(lambda t, x, m: t.masked.sum(x[0], mask=m), X, MASK)
