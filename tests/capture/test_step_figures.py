"""What the compiled MLP step consists of: loop nests of the loss and the update, bytes moved."""

from __future__ import annotations

import pytest

import tracejit as tj

F = tj.nn.functional
LAYERS, BATCH = (784, 512, 512, 10), 256


@pytest.fixture(scope="module")
def kernels():
    """The launches of one training step: MLP, cross-entropy, Adam."""
    layers = []
    for k, (n, m) in enumerate(zip(LAYERS, LAYERS[1:])):
        layers += [tj.nn.Linear(n, m)] + ([tj.nn.ReLU()] if k < len(LAYERS) - 2 else [])
    net = tj.nn.Sequential(*layers)
    optimizer = tj.optim.Adam(net.parameters(), lr=1e-3)

    @tj.script(fullgraph=True)
    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    step(tj.randn(BATCH, LAYERS[0]), tj.randint(0, LAYERS[-1], (BATCH,)))
    return step.report().kernels


def test_the_update_of_all_parameters_is_at_most_two_loop_nests(kernels):
    update = [k for k in kernels if "pow" in k.ops]
    assert 1 <= sum(k.loops for k in update) <= 2


def test_cross_entropy_forward_and_backward_is_at_most_four_loop_nests(kernels):
    """Three, and one that adds the totals of the mean's blocks, however few rows came first."""
    softmax = next(n for n, k in enumerate(kernels) if "exp" in k.ops)
    loss = [k for n, k in enumerate(kernels) if n == softmax or counts_rows(k)]
    assert sum(k.loops for k in loss) <= 4


def counts_rows(kernel):
    """The loss' small kernels: over one number for each row, nothing else."""
    return kernel.bytes_read <= 16 * BATCH and not {"matmul", "pow"} & set(kernel.ops)


def test_bytes_moved_are_near_the_minimum(kernels):
    moved = sum(k.bytes_read + k.bytes_written for k in kernels)
    assert moved <= 1.3 * least_bytes()


def least_bytes():
    """Products read their operands and write their results once; Adam reads parameter, gradient
    and two moments, and writes all but the gradient. What lies between products is not counted."""
    total = 0
    for n, m in zip(LAYERS, LAYERS[1:]):
        activations, weights, results = BATCH * n, n * m, BATCH * m
        forward = weight_gradient = activations + weights + results
        input_gradient = activations + weights + results if n != LAYERS[0] else 0
        total += forward + weight_gradient + input_gradient + 7 * (weights + m)
    return 4 * total
