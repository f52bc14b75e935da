"""Corners that the table's samples do not reach: no gradient, extremes of nothing, zero's sign."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
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
