"""Steps with sparse gradients, captured: one program for all of them, the same rows written."""

from __future__ import annotations

import pytest

import tracejit as tj

OPTIMIZERS = [
    (tj.optim.SparseAdam, {"lr": 0.1}),
    (tj.optim.SparseAdam, {"lr": 0.1, "betas": (0.5, 0.9), "maximize": True}),
    (tj.optim.Adagrad, {"lr": 0.1, "lr_decay": 0.1}),
    (tj.optim.SGD, {"lr": 0.1}),
]


def trained(jit, kind, options, dtype=tj.float64):
    tj.manual_seed(0)
    layer = tj.nn.Embedding(40, 3, sparse=True, dtype=dtype)
    optimizer = kind(layer.parameters(), **options)
    schedule = tj.optim.lr_scheduler.StepLR(optimizer, 5, 0.9)

    @jit
    def step(ids):
        optimizer.zero_grad()
        loss = (layer(ids) ** 2).sum() + layer(ids[:1]).sum()
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for k in range(30):
        ids = (tj.arange(9 if k < 20 else 4) * (k + 3)) % 5 + k % 7  # rows several times
        losses.append(step(ids).item())
        schedule.step()
    seen = [layer.weight, *(x for state in optimizer.state.values() for x in state.values())]
    return losses, [x.tolist() if isinstance(x, tj.Tensor) else x for x in seen], step


@pytest.mark.parametrize(("kind", "options"), OPTIMIZERS)
def test_steps_are_one_program_and_write_what_plain_ones_do(kind, options):
    losses, state, _ = trained(lambda f: f, kind, options)
    for jit in (tj.script, tj.trace):
        found, after, step = trained(jit, kind, options)
        assert found == pytest.approx(losses, rel=1e-12)
        for got, expected in zip(after, state, strict=True):
            assert tj.allclose(tj.tensor(got), tj.tensor(expected), rtol=1e-12, atol=0)
        assert step.report().breaks == [] and step.report().compiles == 1


def test_steps_of_no_row_and_of_one():
    layer = tj.nn.Embedding(3, 2, sparse=True, _weight=tj.ones(3, 2))
    optimizer = tj.optim.SparseAdam(layer.parameters(), lr=0.5)

    @tj.script
    def step(ids):
        optimizer.zero_grad()
        layer(ids).sum().backward()
        optimizer.step()

    step(tj.tensor([], dtype=tj.int64))
    assert layer.weight.tolist() == [[1.0, 1.0]] * 3
    step(tj.tensor([1]))
    assert layer.weight.tolist()[::2] == [[1.0, 1.0]] * 2 and layer.weight[1, 0] < 0.9
