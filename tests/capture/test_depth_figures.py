"""What a deep network asks of the compiler: work that grows as its layers do, not as their
square."""

from __future__ import annotations

import pytest

import tracejit as tj
from tracejit.ir import sizes
from tracejit.lowering import fuse, memory

DEPTH = 12


@pytest.fixture(scope="module")
def asked():
    """How often the first training step of a deep network asks what takes time."""
    layers = []
    for k in range(DEPTH):
        layers += [tj.nn.Conv1d(3 + k, 4 + k, 1), tj.nn.BatchNorm1d(4 + k)]
    net = tj.nn.Sequential(*layers)
    optimizer = tj.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    found = {}

    def counted(patch, owner, name):
        real = getattr(owner, name)

        def call(*args, **kwargs):
            found[name] = found.get(name, 0) + 1
            return real(*args, **kwargs)

        patch.setattr(owner, name, call)

    @tj.script(mode="compiled")
    def step(x):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    with pytest.MonkeyPatch.context() as patch:
        counted(patch, sizes.SizeGuard, "holds")
        counted(patch, sizes, "substitute")
        counted(patch, memory, "dependents")
        counted(patch, fuse, "reaches")
        step(tj.randn(2, 3, 5))
    return found


def test_sizes_are_resolved_in_few_steps(asked):
    assert asked["substitute"] <= 400 * DEPTH


def test_guards_are_asked_again_for_few_writes(asked):
    assert asked["holds"] <= 150 * DEPTH


def test_the_order_of_groups_is_walked_for_few_writes(asked):
    assert asked["reaches"] + asked["dependents"] <= 60 * DEPTH
