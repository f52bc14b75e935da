"""Checks of loops that may fail while a call is recorded: each loop runs once for them."""

import numpy as np
import pytest

import tracejit
from tracejit.jit.capture import value_checks


def filtered(a, x):
    """Solve with a carried matrix in every iteration."""
    total = x.sum() * 0
    for _ in range(20):
        x = tracejit.linalg.solve(a, x) + x
        total = total + (x * x).sum()
    return total


@pytest.fixture
def loops(monkeypatch):
    """Count the loops in what the checks compute."""
    found = []

    def interpret(graph, inputs, **how):
        found.append(sum(node.op.name == "for_loop" for node in graph.nodes))
        return whole(graph, inputs, **how)

    whole = value_checks.interpret
    monkeypatch.setattr(value_checks, "interpret", interpret)
    return found


def test_a_loop_and_its_backward_run_once_each(loops):
    @tracejit.script
    def step(a, x):
        value = filtered(a, x)
        return value, *tracejit.autograd.grad(value, [a, x])

    draws = np.random.default_rng(0)
    numbers = np.eye(3) * 4 + draws.standard_normal((3, 3)), draws.standard_normal(3)
    leaves = [tracejit.tensor(n, requires_grad=True) for n in numbers]
    got = step(*leaves)
    assert not step.report().breaks and sum(loops) == 2, loops
    value = filtered(*leaves)
    want = value, *tracejit.autograd.grad(value, leaves)
    for one, other in zip(got, want):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-10)


def test_a_second_loop_starts_from_what_the_first_one_computed():
    @tracejit.script
    def step(a, x):
        first = filtered(a, x)
        return filtered(a, x + first)

    a, x = tracejit.eye(3) * 4, tracejit.ones(3)
    got = step(a, x)
    assert not step.report().unrolled
    assert tracejit.allclose(got, filtered(a, x + filtered(a, x)))


def test_a_loop_that_fails_later_is_seen():
    """Values of an earlier loop decide whether a later one fails."""
    def step(a, x):
        first = filtered(a, x)
        return filtered(a * (first < 0), x)

    compiled = tracejit.script(step)
    for function in (step, compiled, compiled):
        with pytest.raises(RuntimeError, match="singular"):
            function(tracejit.eye(3) * 4, tracejit.ones(3))
