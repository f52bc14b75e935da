"""Counts of references to gradients are tried out, and gradients are copied where they differ."""

import pytest

import tracejit as tj
from tracejit.core.eager import sole_gradients
from tracejit.core.eager.engine import Task
from tracejit.core.memory import reliances


@pytest.fixture
def again(monkeypatch):
    """Count again as if for the first time; afterwards all is as it was."""
    monkeypatch.delitem(reliances.answers, "references")
    for name in ("grad", "parent", "storage"):
        monkeypatch.setattr(sole_gradients._Expected, name, 0)
    monkeypatch.setattr(sole_gradients, "_sink", [])
    return monkeypatch


def taken_over():
    """Whether the leaf's gradient looks at memory that the engine was given, not at a copy."""
    x = tj.ones(3, requires_grad=True)
    seen = []
    y = x * 2
    y.register_hook(lambda grad: None)
    x.register_hook(lambda grad: seen.append(grad.data_ptr()))
    y.sum().backward()
    return seen == [x.grad.data_ptr()] and x.grad.tolist() == [2.0, 2.0, 2.0]


def test_sole_gradients_are_taken_over_here():
    assert reliances.holds("references") and taken_over()


@pytest.mark.parametrize("more", [1, 2])
def test_versions_that_count_more_are_measured(again, more):
    real = sole_gradients.sys.getrefcount
    count = lambda x: real(x) - 1 + more  # noqa: E731  (less one: the call of this function)
    again.setattr(sole_gradients.sys, "getrefcount", count)
    sole_gradients.calibrate(Task._sink)
    assert reliances.holds("references") and taken_over()


def test_where_counts_say_nothing_gradients_are_copied(again):
    again.setattr(sole_gradients.sys, "getrefcount", lambda x: 1)
    sole_gradients.calibrate(Task._sink)
    assert not reliances.holds("references") and not taken_over()
    held = tj.ones(3)
    x = tj.zeros(3, requires_grad=True)
    x.backward(held)
    held.add_(1)
    assert x.grad.tolist() == [1.0, 1.0, 1.0]
