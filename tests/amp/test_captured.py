"""Autocast and scaled steps in captured functions: guarded, recorded, the same as plainly."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import tracejit
from tracejit import nn
from tracejit.nn import functional as F

MODES = ["graph", "compiled"]


@pytest.mark.parametrize("mode", MODES)
def test_the_state_of_the_caller_is_guarded(mode):
    captured = tracejit.script(lambda x: (x @ x, F.mse_loss(x.bfloat16(), x)), mode=mode)
    x = tracejit.ones(2, 2)
    expected = {None: "float32", tracejit.bfloat16: "bfloat16", tracejit.float16: "float16"}
    for dtype in (None, tracejit.bfloat16, None, tracejit.float16, tracejit.bfloat16, None):
        with tracejit.autocast("cpu", dtype=dtype, enabled=dtype is not None):
            product, loss = captured(x)
        assert product.dtype.name == expected[dtype]
        assert loss.dtype is (tracejit.float32)
    report = captured.report()
    assert (report.compiles, report.breaks) == (3, [])
    assert "autocast" in str(report.recompiles[0])


@pytest.mark.parametrize("mode", MODES)
def test_a_context_inside_is_recorded(mode):
    def step(x, w):
        with tracejit.autocast("cpu"):
            y = F.gelu(F.linear(x, w))
            with tracejit.autocast("cpu", enabled=False):
                z = F.linear(x, w)
        return y, z, x @ w, tracejit.is_autocast_enabled("cpu")

    captured = tracejit.script(step, mode=mode)
    for n in (3, 5, 1):
        x, w = tracejit.randn(n, 4), tracejit.randn(4, 4)
        for a, b in zip(captured(x, w)[:3], step(x, w)):
            assert a.dtype is b.dtype
            np.testing.assert_allclose(a.float().numpy(), b.float().numpy(), rtol=0.01, atol=0.01)
        assert captured(x, w)[3] is False
    assert (captured.report().compiles, captured.report().breaks) == (1, [])


def test_a_context_of_the_caller_that_changes_is_no_stale_one():
    holder = nn.Module()
    holder.context = tracejit.autocast("cpu")

    def step(x):
        with holder.context:
            return x @ x

    captured, x = tracejit.script(step, mode="graph"), tracejit.ones(2, 2)
    assert captured(x).dtype is captured(x).dtype is tracejit.bfloat16
    holder.context = tracejit.autocast("cpu", dtype=tracejit.float16)
    assert captured(x).dtype is tracejit.float16
    holder.context.fast_dtype = tracejit.bfloat16
    assert captured(x).dtype is tracejit.bfloat16
    holder.context._enabled = False
    assert captured(x).dtype is tracejit.float32


def test_what_a_call_leaves_switched_on_is_a_break():
    def leave(x):
        tracejit.set_autocast_enabled("cpu", True)
        return x

    captured = tracejit.script(leave, mode="graph")
    try:
        captured(tracejit.ones(2))
        assert tracejit.is_autocast_enabled("cpu")
        assert "autocast" in str(captured.report().breaks[0])
    finally:
        tracejit.set_autocast_enabled("cpu", False)


def test_backward_of_a_replay_within_a_context():
    w = tracejit.randn(4, 4, requires_grad=True)
    captured = tracejit.script(lambda x: (x @ w).float().logsumexp(-1).sum(), mode="compiled")
    for _ in range(2):
        grads = []
        for f in (captured, captured.function):
            with tracejit.autocast("cpu"):
                grads.append(tracejit.autograd.grad(f(tracejit.ones(3, 4)), w)[0].numpy())
        np.testing.assert_allclose(grads[0], grads[1], rtol=0.02, atol=0.02)


def trained(capture, mode, optimizer, calls):
    """Losses, the scaler's and the optimizer's state after each step, and parameters at the end."""
    tracejit.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = optimizer(model.parameters())
    scaler = tracejit.amp.GradScaler("cpu", growth_interval=2)

    def step(x, y):
        optimizer.zero_grad()
        with tracejit.autocast("cpu"):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss

    run, seen = tracejit.script(step, mode=mode) if capture else step, []
    for x, y in calls:
        loss = float(run(x, y))
        seen.append((loss, scaler.state_dict(), copy.deepcopy(optimizer.state_dict()["state"])))
    return seen, [p.detach().numpy() for p in model.parameters()], run


OPTIMIZERS = {
    "SGD": lambda p: tracejit.optim.SGD(p, lr=0.1),
    "momentum": lambda p: tracejit.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5),
    "Adam": lambda p: tracejit.optim.Adam(p, lr=0.01),
}


@pytest.mark.parametrize("first", ["finite", "infinite"])
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
def test_a_scaled_training_step(mode, name, first):
    tracejit.manual_seed(1)
    calls = [(tracejit.randn(n, 4), tracejit.randint(3, (n,))) for n in (3, 5, 8, 3, 4)]
    for k in (3, 0) if first == "infinite" else (3,):
        calls[k] = (calls[k][0] * tracejit.inf, calls[k][1])
    expected, theirs, _ = trained(False, mode, OPTIMIZERS[name], calls)
    found, mine, run = trained(True, mode, OPTIMIZERS[name], calls)
    for (a, scale, state), (b, their_scale, their_state) in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=0.02)
        assert scale == their_scale
        assert {k: [*s] for k, s in state.items()} == {k: [*s] for k, s in their_state.items()}
    for a, b in zip(mine, theirs):
        np.testing.assert_allclose(a, b, atol=0.02)
    report = run.report()
    if name == "SGD":
        assert report.breaks == []
    else:  # whether there is state after a first step is for its value to say
        assert "the first step of an optimizer" in str(report.breaks[0])
    assert report.compiles <= 2


def test_a_step_that_is_not_taken_makes_no_state():
    w = tracejit.ones(2, requires_grad=True)
    optimizer = tracejit.optim.Adam([w], lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = (w * x).sum()
        loss.backward()
        if loss > 0:
            optimizer.step()
        return loss

    captured = tracejit.script(step, mode="graph")
    captured(-tracejit.ones(2))
    assert optimizer.state_dict()["state"] == {}
    captured(tracejit.ones(2))
    captured(tracejit.ones(2))
    captured(-tracejit.ones(2))
    assert float(optimizer.state_dict()["state"][0]["step"]) == 2
    np.testing.assert_allclose(w.detach().numpy(), 0.8, rtol=1e-5)
