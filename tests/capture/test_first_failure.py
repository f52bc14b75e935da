"""A first call that fails in an op that looks at values: what came before has happened, in memory
and in the generator, and nothing that comes after it has (C7)."""

from __future__ import annotations

import pytest

import tracejit as tj

ZEROS = tj.zeros(3)


def alone(x):
    return tj.multinomial(ZEROS, 1)


def between_writes(x):
    x.add_(1)
    tj.rand(2)
    y = tj.multinomial(ZEROS, 1)
    x.add_(1)
    tj.rand(2)
    return y


def of_computed_weights(x):
    x.add_(1)
    tj.rand(2)
    y = tj.multinomial(ZEROS * x.sum(), 1)
    x.add_(1)
    return y


def bernoulli(x):
    x.mul_(3)
    y = tj.bernoulli(tj.rand(3) + x.sum())
    x.add_(1)
    return y


def poisson(x):
    x.sub_(3)
    y = tj.poisson(x)
    x.add_(1)
    return y


def normal(x):
    x.sub_(3)
    tj.rand(2)
    y = tj.normal(x, x)
    x.add_(1)
    return y


def caught(x):
    x.add_(1)
    try:
        y = tj.normal(ZEROS, ZEROS - x.sum())
    except RuntimeError:
        y = tj.rand(3)
    x.add_(y.sum())
    return y


def after_co_execution(x):
    x.mul_(x.sum().item())
    y = tj.multinomial(ZEROS * x.sum() * tj.rand(3), 1)
    x.add_(1)
    return y


PROGRAMS = [alone, between_writes, of_computed_weights, bernoulli, poisson, normal, caught,
            after_co_execution]  # fmt: skip


def outcome(function, x):
    """Result or error, memory, versions, and where the generator is."""
    try:
        result = function(x).tolist()
    except RuntimeError as error:
        result = str(error)
    return result, x.tolist(), x._version, tj.random.get_rng_state().tolist()


@pytest.mark.parametrize("mode", ["graph", "compiled"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_state_is_what_the_plain_function_leaves(program, mode):
    tj.manual_seed(3)
    plain = [outcome(program, tj.ones(2)) for _ in range(5)]
    captured = tj.script(program, mode=mode)
    tj.manual_seed(3)
    assert [outcome(captured, tj.ones(2)) for _ in range(5)] == plain
