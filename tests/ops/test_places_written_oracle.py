"""Writes at a place that a tensor without dimensions holds go where it was, whatever it holds when
gradients arrive: `y[t] = x; t += 1; y.sum().backward()`, as PyTorch has it, plain and captured."""

from __future__ import annotations

import pytest

import tracejit as tj

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def scaled(t, y, x):
    y[t] *= 3


def replaced(t, y, x):
    y[t] = x


def elements(t, y, x):
    y[t, 0] = 5.0
    y[1:, t] = x.prod()


@pytest.mark.parametrize("write", [scaled, replaced, elements])
def test_a_place_that_moves_on_after_a_write(write):
    def gradients(library, jit):
        @jit
        def f(t):
            w, x = (library.ones(*size, requires_grad=True) for size in ((3, 2), (2,)))
            y = w * 2
            write(t, y, x)
            t.add_(1)
            (y.sum() + x.sum()).backward()
            return w.grad.tolist(), x.grad.tolist()

        return [f(library.tensor(k)) for k in (0, 1, 0)]

    expected = gradients(torch, lambda f: f)
    assert all(gradients(tj, jit) == expected for jit in (lambda f: f, tj.script, tj.trace))
