"""Writes through `.data` between a captured call and its backward: no version tells of them."""

from __future__ import annotations

import pytest

import tracejit as tj
from tracejit import config


def leaf(*values):
    return tj.tensor(values, requires_grad=True)


@pytest.mark.parametrize("mode", ["graph", "compiled"])
@pytest.mark.parametrize("calls", [1, 3])
def test_what_would_be_computed_again_from_new_elements_is_refused(mode, calls):
    w, x = leaf(1.0, 2.0), leaf(0.5, -0.5)
    f = tj.script(lambda x: (x * w).tanh().sum())
    with config.override(mode=mode):
        for _ in range(calls):
            y = f(x)
        w.data.mul_(-1.5)
        with pytest.raises(RuntimeError, match=r"written through \.data"):
            y.backward()
        f(x).backward()  # a call after the write


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


def test_a_second_derivative_of_what_was_written_is_refused():
    w = leaf(1.0, 2.0)
    f = tj.script(lambda x: ((x + w) ** 3).sum())
    for _ in range(2):
        x = tj.ones(2)
        y = f(x)
        x.data.add_(100)
        with pytest.raises(RuntimeError, match=r"written through \.data"):
            tj.autograd.grad(y, w, create_graph=True)
