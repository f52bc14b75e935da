"""Corners that the table's samples do not reach: no gradient, extremes of nothing, zero's sign."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
LONG = pytest.mark.parametrize(
    "captured", [False, pytest.param(True, marks=pytest.mark.full)], ids=["eager", "captured"])
BOTH = pytest.mark.parametrize("captured", [False, True], ids=["eager", "captured"])


def gradients(library, function, *arrays, captured=False):
    leaves = [library.tensor(a).requires_grad_() for a in arrays]
    call = library.script(function) if captured else function
    call(library, *leaves).sum().backward()
    return [None if x.grad is None else x.grad.tolist() for x in leaves]


CORNERS = {
    "atan2": (lambda t, y, x: t.atan2(y, x), [0.0, 0.0, 1.0, -0.0], [0.0, 2.0, 0.0, -0.0]),
    "norm 0": (lambda t, x: x.norm(0), [1.0, 0.0]),
    "norm 0 of rows": (lambda t, x: t.norm(x, 0, dim=0), [[1.0, 0.0]]),
    "vector_norm 0": (lambda t, x: t.linalg.vector_norm(x, 0), [1.0, 0.0]),
    "norm 0 in a sum": (lambda t, x: x.norm(0) + x, [1.0, 0.0]),
    "cdist 0": (lambda t, x, y: t.cdist(x, y, p=0.0), [[1.0, 0.0]], [[1.0, 2.0]]),
    "rrelu": (lambda t, x: t.nn.functional.rrelu(x), [0.0, -0.0, 1.0]),
    "binary_cross_entropy": (lambda t, x, y: t.nn.functional.binary_cross_entropy(x, y),
                             [0.0, 1.0, 0.5], [0.0, 1.0, 0.25]),
    "kl_div": (lambda t, x, y: t.nn.functional.kl_div(x, y, reduction="sum"),
               [-1.0, -2.0], [0.0, 0.5]),
    "logsumexp": (lambda t, x: t.logsumexp(x, -1), [[-np.inf, -np.inf], [0.0, -np.inf]]),
}  # fmt: skip


@BOTH
@pytest.mark.parametrize("name", CORNERS)
def test_gradients(name, captured):
    function, *arrays = CORNERS[name]
    want = gradients(torch, function, *arrays)
    got = gradients(tracejit, function, *arrays, captured=captured)
    for g, w in zip(got, want, strict=True):
        assert (g is None) == (w is None)
        if w is not None:
            np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("order", [float("inf"), -float("inf"), -1.0])
@pytest.mark.parametrize("shape, dim", [((0,), None), ((3, 0), None), ((0, 3), 0)])
def test_extremes_of_nothing_are_refused(order, shape, dim):
    for library in (torch, tracejit):
        with pytest.raises(RuntimeError, match="does not have an identity"):
            library.zeros(shape).norm(order, dim)
    assert tracejit.zeros(0, 3).norm(order, 1).shape == (0,)


@BOTH
@pytest.mark.parametrize("count", [1, 3, 16, 33])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_relu_keeps_the_sign_of_zero(captured, count, kind):
    values = [-0.0, 0.0, -0.0, 1.0, -1.0, 0.0] * 6
    relu = tracejit.script(tracejit.relu) if captured else tracejit.relu
    got = relu(tracejit.tensor(values[:count], dtype=getattr(tracejit, kind)))
    want = torch.relu(torch.tensor(values[:count], dtype=getattr(torch, kind)))
    assert np.signbit(got.numpy()).tolist() == np.signbit(want.numpy()).tolist()


PIECES = ("relu6", "hardtanh", "elu", "selu", "celu", "hardswish", "hardshrink", "softshrink",
          "hardsigmoid")  # fmt: skip


@LONG
@pytest.mark.parametrize("name", PIECES)
def test_pieces_at_their_ends_and_at_nan(name, captured):
    """As PyTorch's vectors compute; the last few of its elements differ at NaN."""
    for number in (np.nan, np.inf, -np.inf, 3.0, -3.0, 6.0, 0.5, -0.5, 1.0, -1.0, 0.0, -0.0):
        def call(library, x):
            return getattr(library.nn.functional, name)(x)

        (want,), (got,) = (gradients(library, call, [number] * 67, captured=c)
                           for library, c in ((torch, False), (tracejit, captured)))
        np.testing.assert_allclose(got[:16], want[:16], rtol=1e-6, err_msg=str(number))


LOSSES = {
    "nll_loss": lambda t, x, y: t.nn.functional.nll_loss(x, y),
    "nll_loss sum": lambda t, x, y: t.nn.functional.nll_loss(x, y, reduction="sum"),
    "cross_entropy": lambda t, x, y: t.nn.functional.cross_entropy(x, y),
    "cross_entropy none": lambda t, x, y: t.nn.functional.cross_entropy(x, y, reduction="none"),
    "ignored class": lambda t, x, y: t.nn.functional.cross_entropy(x, y, ignore_index=1),
}


@LONG
@pytest.mark.parametrize("masked", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name", LOSSES)
def test_scores_of_ignored_elements_do_not_count(name, masked, captured):
    scores = np.arange(12.0).reshape(4, 3)
    scores[1, 0] = scores[3, :2] = masked
    target = [2, 1 if name == "ignored class" else -100, 0, 1 if "class" in name else -100]

    def run(library, captured=False):
        x = library.tensor(scores).requires_grad_()
        call = library.script(LOSSES[name]) if captured else LOSSES[name]
        loss = call(library, x, library.tensor(target))
        loss.sum().backward()
        return loss.detach().numpy(), x.grad.numpy()

    for got, want in zip(run(tracejit, captured), run(torch), strict=True):
        np.testing.assert_allclose(got, want)


BAGS = {
    "ties": [[1.0, 2.0], [1.0, 1.0], [0.0, 2.0], [1.0, 0.0]],
    "NaN first": [[np.nan, 2.0], [1.0, np.nan], [0.0, np.inf], [1.0, 0.0]],
    "infinities": [[-np.inf, np.inf], [-np.inf, np.inf], [-np.inf, np.nan], [np.inf, 0.0]],
}


@LONG
@pytest.mark.parametrize("padding", [None, 0])
@pytest.mark.parametrize("name", BAGS)
def test_the_first_largest_of_a_bag_has_the_gradient(name, padding, captured):
    def bags(library, table, places, offsets):
        return library.nn.functional.embedding_bag(
            places, table, offsets, mode="max", padding_idx=padding)

    def run(library, captured=False):
        table = library.tensor(BAGS[name]).requires_grad_()
        call = library.script(bags) if captured else bags
        found = call(library, table, library.tensor([0, 1, 2, 3, 1, 0, 1]),
                     library.tensor([0, 3, 3, 5]))
        (found * library.tensor([[1.0, 2.0]])).sum().backward()
        return found.detach().numpy(), table.grad.numpy()

    for got, want in zip(run(tracejit, captured), run(torch), strict=True):
        np.testing.assert_array_equal(got, want)


@LONG
def test_the_inverse_of_a_singular_factor_is_refused(captured):
    for factor in ([[0.0]], [[1.0, 0.0], [2.0, 0.0]], [[[1.0]], [[0.0]]], [[[1.0]], [[2.0]]]):
        texts = []
        for library in (torch, tracejit):
            call = library.cholesky_inverse
            call = library.script(call) if captured and library is tracejit else call
            try:
                texts.append(call(library.tensor(factor)).tolist())
            except RuntimeError as failure:
                texts.append(str(failure))
        assert texts[0] == texts[1]
