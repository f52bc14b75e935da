"""Optimizers as users write them, in a captured step: state made on first use, counters in Python,
numbers computed of them. One program for the first step, one for all others, nothing unmodelled.
"""

import math

import pytest

import tracejit
from tracejit import nn, optim


class Own(optim.Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr, "step": 0})


class Decorated(Own):
    @tracejit.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["mean"] = tracejit.zeros_like(p)
                    state["square"] = tracejit.zeros_like(p)
                state["step"] += 1
                state["mean"].mul_(0.9).add_(p.grad, alpha=0.1)
                state["square"].mul_(0.99).addcmul_(p.grad, p.grad, value=0.01)
                rate = group["lr"] * math.sqrt(1 - 0.99 ** state["step"])
                rate /= 1 - 0.9 ** state["step"]
                p.addcdiv_(state["mean"], state["square"].sqrt().add_(1e-3), value=-rate)


class OlderStyle(Own):
    def step(self, closure=None):
        for group in self.param_groups:
            group["step"] += 1
            for p in group["params"]:
                grad = p.grad.data
                state = self.state[p]
                if "mean" not in state:
                    state["mean"] = grad.clone()
                state["mean"].lerp_(grad, min(1.0, 1 / math.sqrt(group["step"])))
                p.data.add_(state["mean"].sign(), alpha=-group["lr"] * math.exp(-group["step"]))


class InADict(Own):
    """What it keeps is in a dict of its own, which the first step replaces."""

    velocity = None

    @tracejit.no_grad
    def step(self, closure=None):
        params = [p for group in self.param_groups for p in group["params"]]
        if self.velocity is None:
            self.velocity = {p: tracejit.zeros_like(p) for p in params}
        for p in params:
            self.velocity[p].mul_(0.9).add_(p.grad)
            p.sub_(self.velocity[p] * 0.1)


def trained(kind, capture=None, calls=6):
    tracejit.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    optimizer = kind(model.parameters())

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    run = step if capture is None else capture(step)
    x = tracejit.arange(6.0, dtype=tracejit.float64).view(2, 3) / 6
    losses = [run(x).item() for _ in range(calls)]
    kept = getattr(optimizer, "velocity", None) or optimizer.state
    assert [any(k is p for p in model.parameters()) for k in kept] == [True] * 4
    values = [v for p in model.parameters() for v in p.flatten().tolist()]
    return losses + values, [s.get("step") for s in optimizer.state.values()], run


@pytest.mark.parametrize("kind", (Decorated, OlderStyle, InADict))
def test_a_step_is_a_program_whatever_its_number(kind):
    plain, counts, _ = trained(kind)
    found, counts_too, captured = trained(kind, tracejit.script)
    assert found == pytest.approx(plain, rel=1e-9) and counts_too == counts
    report = captured.report()
    assert not report.breaks, report
    assert report.cache_misses == 2, report


def test_a_decorated_function_is_captured_as_a_plain_one_is():
    def scaled(x, n):
        y = x * math.sqrt(n)
        if y.sum() > 4:
            y = y - 1
        return y

    bfloat16 = tracejit.autocast("cpu", dtype=tracejit.bfloat16)
    for decorate in (tracejit.no_grad(), tracejit.enable_grad(), tracejit.inference_mode(),
                     tracejit.set_grad_enabled(False), bfloat16):
        inner = decorate(scaled)
        captured = tracejit.script(lambda x, n, inner=inner: inner(x, n) * 1)
        for n in (0.5, 1.5, 2.5, 3.5):
            x = tracejit.full((3,), 0.9)
            assert captured(x, n).tolist() == pytest.approx(scaled(x, n).tolist())
        assert captured.report().cache_misses == 1 and not captured.report().breaks


def test_a_dict_may_be_returned_whose_keys_are_the_callers():
    a, b = tracejit.ones(2), nn.Linear(2, 1)

    @tracejit.script
    def by_object(x):
        return {x: x * 2, b: x + 1, "name": x}

    for _ in range(3):
        found = by_object(a)
        assert [k is k_ for k, k_ in zip(found, (a, b, "name"))] == [True] * 3
        assert found[a].tolist() == found[b].tolist() == [2.0, 2.0]
    assert not by_object.report().breaks and by_object.report().cache_hits == 2


def test_a_dict_gets_its_keys_in_another_order():
    a, b = tracejit.ones(2), tracejit.zeros(3)

    @tracejit.script
    def turned(table):
        first = next(iter(table))
        table[first] = table.pop(first) + 1

    for capture in (turned, turned, turned):
        table = {a: a.clone(), b: b.clone()}
        capture(table)
        assert [k is k_ for k, k_ in zip(table, (b, a))] == [True] * 2
        assert table[a].tolist() == [2.0, 2.0] and table[b].tolist() == [0.0] * 3
