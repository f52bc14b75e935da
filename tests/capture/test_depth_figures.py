"""What a deep network asks of the compiler: work that grows as its layers do, not as their
square."""

from __future__ import annotations

import pytest

import tracejit as tj
from tracejit.jit.ir import sizes
from tracejit.jit.lowering import fuse, memory

DEPTH = 12


def training_step(depth, **options):
    """A step of a network of convolutions and norms."""
    layers = []
    for k in range(depth):
        layers += [tj.nn.Conv1d(3 + k, 4 + k, 3, padding=1), tj.nn.BatchNorm1d(4 + k)]
    net = tj.nn.Sequential(*layers)
    optimizer = tj.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    @tj.script(**options)
    def step(x):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    return step


@pytest.fixture(scope="module")
def asked():
    """How often the first training step of a deep network asks what takes time."""
    step, found = training_step(DEPTH, mode="compiled"), {}

    def counted(patch, owner, name):
        real = getattr(owner, name)

        def call(*args, **kwargs):
            found[name] = found.get(name, 0) + 1
            return real(*args, **kwargs)

        patch.setattr(owner, name, call)

    with pytest.MonkeyPatch.context() as patch:
        counted(patch, sizes.ShapeGuard, "holds")
        counted(patch, sizes, "_rebuilt")
        counted(patch, memory, "reaches")
        counted(patch, fuse, "reaches")
        counted(patch, sizes, "_terms")
        step(tj.randn(2, 3, 5))
    return found


def test_sizes_are_resolved_in_few_steps(asked):
    assert asked["_rebuilt"] <= 150 * DEPTH


def test_guards_are_asked_again_for_few_writes(asked):
    assert asked["holds"] <= 150 * DEPTH


def test_the_order_of_groups_is_walked_for_few_writes(asked):
    assert asked["reaches"] <= 60 * DEPTH


def test_sizes_of_images_have_no_symbol_more_with_every_layer(asked):
    assert asked["_terms"] <= 2500 * DEPTH


def test_what_a_step_reads_of_its_parameters_is_guarded_once():
    counts = []
    for depth in (2, 4, 6):
        step = training_step(depth)
        step(tj.randn(2, 3, 5))
        assert not step.report().breaks
        counts.append(len(step.report().guards))
    assert counts[2] - counts[1] == counts[1] - counts[0] <= 2 * 160, counts
