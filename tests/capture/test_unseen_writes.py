"""Writes between a captured call and its backward to what the backward computes again from: no
version tells of those through `.data` and NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit as tj
from tracejit import config


def leaf(*values):
    return tj.tensor(values, requires_grad=True)


def gradients(function, write, calls, mode="graph"):
    """Gradients of plain and captured calls, in between of which somebody writes."""
    found = []
    for jit in (lambda f: f, tj.script):
        w, x = leaf(1.0, 2.0), leaf(0.5, -0.5)
        array = w.detach().numpy()
        f = jit(function)
        with config.override(mode=mode):
            for _ in range(calls):
                y = f(x, w)
            write(w, array)
            y.sum().backward()
        found.append([x.grad.tolist(), w.grad.tolist()])
    return found


def through_data(w, array):
    w.data.mul_(-1.5)


def through_numpy(w, array):
    array *= -1.5


def other_memory(w, array):
    w.data = w.data * -1.5


@pytest.mark.parametrize("mode", ["graph", "compiled"])
@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize("write", [through_data, through_numpy, other_memory])
def test_what_was_kept_is_what_it_was_and_what_is_read_is_what_it_is_now(write, calls, mode):
    plain, captured = gradients(lambda x, w: (x * w).tanh() * w, write, calls, mode)
    np.testing.assert_allclose(captured, plain, rtol=1e-5)


def test_what_the_plain_backward_reads_as_well_may_be_written():
    w, other = leaf(1.0, 2.0), leaf(1.0, 2.0)
    f = tj.script(lambda x: (x * w).sum())
    for _ in range(3):
        x = leaf(0.5, -0.5)
        y = f(x)
        w.data.mul_(-1.5)
        other.data.mul_(2)
        (g,) = tj.autograd.grad(y, x)
        assert (g == w).all()


def test_a_captured_call_writes_through_data():
    w = leaf(1.0, 2.0)
    f = tj.script(lambda x: (x * w).sin().sum())
    update = tj.script(lambda: w.data.mul_(2))
    for _ in range(4):
        x, before = leaf(0.5, -0.5), w.detach().clone()
        y = f(x)
        update()
        y.backward()
        assert tj.allclose(x.grad, (x * before).cos() * w)


def test_a_second_derivative_of_what_was_written():
    w = leaf(1.0, 2.0)
    f = tj.script(lambda x: ((x + w) ** 3).sum())
    for _ in range(2):
        x = tj.ones(2)
        y = f(x)
        x.data.add_(100)
        (g,) = tj.autograd.grad(y, w, create_graph=True)
        (second,) = tj.autograd.grad(g.sum(), w)
        assert tj.allclose(second, 6 * (1 + w))


def test_a_loop_that_runs_again_refuses():
    w = leaf(1.0, 2.0)

    @tj.script
    def f(x):
        for _ in range(30):
            x = (x * w * 0.5).sin()
        return x.sum()

    for _ in range(2):
        y = f(tj.ones(2))
        w.data.mul_(2)
        with pytest.raises(RuntimeError, match="runs a branch or a loop again"):
            y.backward()
