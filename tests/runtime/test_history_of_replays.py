"""What a replay keeps from call to call to give its results a history quickly must not be seen."""

from __future__ import annotations

import pytest

import tracejit as tj


def affine(parameters: int = 4):
    weights = [tj.full((3,), 1.0 + k, requires_grad=True) for k in range(parameters)]

    def plain(x):
        for weight in weights:
            x = x * weight
        return x

    return weights, plain


@pytest.mark.parametrize("kept", [True, False], ids=["results live on", "results are dropped"])
def test_gradients_go_to_the_tensors_of_this_call(kept: bool) -> None:
    weights, plain = affine()
    compiled = tj.script(plain)
    results, given = [], []
    for k in range(6):
        x = tj.full((3,), 0.5 + k, requires_grad=True)
        given.append(x)
        results.append(compiled(x))
        if not kept:
            results.pop().sum().backward()
    if kept:
        for y in results:
            y.sum().backward()
    assert [x.grad.tolist() for x in given] == [[24.0] * 3] * 6
    assert weights[0].grad.tolist() == [24.0 * sum(0.5 + k for k in range(6))] * 3


def test_a_leaf_that_changed_while_results_live_on() -> None:
    weights, plain = affine(2)
    compiled = tj.script(plain)
    x, results = tj.ones(3), []
    for _ in range(5):
        results.append(compiled(x))
    old = weights[0]
    weights[0] = tj.full((3,), 5.0, requires_grad=True)
    results.append(compiled(x))
    weights[1].requires_grad_(False)
    results.append(compiled(x))
    weights[1].requires_grad_()
    results.append(compiled(x))
    for y in results:
        y.sum().backward()
    assert old.grad.tolist() == [10.0] * 3
    assert weights[0].grad.tolist() == [6.0] * 3
    assert weights[1].grad.tolist() == [5 * 1.0 + 2 * 5.0] * 3


def test_a_leaf_that_becomes_a_result_while_results_live_on() -> None:
    weights, plain = affine(2)
    compiled = tj.script(plain)
    x, results = tj.ones(3), []
    for _ in range(5):
        results.append(compiled(x))
    factor = tj.full((3,), 2.0, requires_grad=True)
    weights[1].data.fill_(1.0)
    with tj.no_grad():
        leaf = weights[1].clone()
    weights[1] = leaf.mul_(factor)
    results.append(compiled(x))
    results[-1].sum().backward()
    assert factor.grad.tolist() == [1.0] * 3
    assert weights[0].grad.tolist() == [2.0] * 3


@pytest.mark.parametrize("size", [3, 5000])
def test_gradients_are_nobody_elses(size: int) -> None:
    """Leaves take over what a captured backward made: no copy, and no other holder."""
    a, b = tj.ones(size, requires_grad=True), tj.ones(size, requires_grad=True)
    seen: list = []
    compiled = tj.script(lambda a, b: a + b)
    handle = None
    for k in range(6):
        if k == 3:
            handle = a.register_hook(seen.append)
        y = compiled(a, b)
        y.sum().backward(retain_graph=True)
        assert a.grad.data_ptr() != b.grad.data_ptr()
        a.grad.mul_(7)
        assert b.grad[0] == 1 and all(g[0] == 1 for g in seen)
        first = a.grad
        y.sum().backward()
        assert first is a.grad and a.grad[0] == 8 and b.grad[0] == 2
        a.grad = b.grad = None
        assert first[0] == 8
    handle.remove()


def test_training_leaves_guards_native() -> None:
    """Sinks of leaves come and go with each backward: no reason to ask for leaves in Python."""
    weights, plain = affine(8)
    compiled = tj.script(plain)

    def step(x):
        compiled(x).sum().backward()

    for _ in range(100):
        step(tj.ones(3))
    ((_, entry),) = compiled.entries
    fast_guards = entry.guards.fast_guards
    if fast_guards.snapshot is None:
        pytest.skip("no snapshots on this interpreter")
    assert fast_guards.snapshot.hits > 64
    assert {where for _, where in fast_guards.changing} == {"root"}  # the argument
