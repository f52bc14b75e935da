"""Results whose history needs what the call itself wrote later: a backward raises as in eager mode.

The call is replayed all the same, as most of these are never differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tracejit as tj

WRITTEN = "modified by an inplace operation"


def net() -> Any:
    made = tj.nn.Sequential(tj.nn.Linear(2, 3), tj.nn.Tanh(), tj.nn.Linear(3, 1))
    with tj.no_grad():
        for k, p in enumerate(made.parameters()):
            p.copy_(tj.linspace(-1, 1 + k, p.numel()).reshape(p.shape))
    return made


def step_of(model: Any, extra: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    optimizer = tj.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any, scale: Any) -> Any:
        loss, other = (model(x) ** 2).mean(), model(x + 1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach(), extra(other), scale * 3

    return step


def written_by_hand(w: Any, x: Any) -> Any:
    y = (w * x).sum()
    with tj.no_grad():
        w.mul_(2.0)
    return y


@pytest.mark.parametrize("extra", [lambda v: v, lambda v: [v * 2, {"val": v}]])
def test_a_validation_loss_replays(extra: Callable[[Any], Any]) -> None:
    found = []
    for wrap in (lambda f: f, tj.script):
        step = wrap(step_of(net(), extra))
        x, scale = tj.ones(4, 2), tj.tensor(2.0, requires_grad=True)
        found.append([step(x * k, scale) for k in range(4)])
        for _, other, scaled in found[-1]:
            val = other if isinstance(other, tj.Tensor) else other[0]
            assert val.requires_grad and val.grad_fn is not None and not val.is_leaf
            with pytest.raises(RuntimeError, match=WRITTEN):
                (val + 1).backward()
            scaled.backward()
        assert scale.grad.item() == 12.0
    assert step.report().cache_hits == 3 and not step.report().breaks
    for plain, captured in zip(*found, strict=True):
        flat = [x[1] if isinstance(x[1], tj.Tensor) else x[1][0] for x in (plain, captured)]
        assert tj.allclose(flat[0], flat[1]) and tj.allclose(plain[0], captured[0])


def test_a_parameter_that_the_call_writes_itself() -> None:
    step, plain = tj.script(written_by_hand), written_by_hand
    ours, theirs = (tj.ones(3, requires_grad=True) for _ in range(2))
    x = tj.arange(3.0).requires_grad_()
    for k in range(3):
        found, wanted = step(ours, x), plain(theirs, x)
        assert found.item() == wanted.item() == 3.0 * 2**k
        for result in (found, wanted):
            with pytest.raises(RuntimeError, match=WRITTEN):
                result.backward()
    assert step.report().cache_hits == 2 and not step.report().breaks


def test_a_result_that_needs_nothing_written_keeps_its_history() -> None:
    """The sum's gradient needs no value of the parameter: it may be taken later."""

    def step(w: Any, x: Any) -> Any:
        needs, free = (w * x).sum(), (w + x).sum()
        with tj.no_grad():
            w.mul_(2.0)
        return needs, free

    captured = tj.script(step)
    for _ in range(3):
        w, x = tj.ones(3, requires_grad=True), tj.ones(3, requires_grad=True)
        needs, free = captured(w, x)
        with pytest.raises(RuntimeError, match=WRITTEN):
            needs.backward()
        free.backward()
        assert w.grad.tolist() == [1.0, 1.0, 1.0]
    assert captured.report().cache_hits == 2 and not captured.report().breaks


def test_gradients_asked_for_by_name_raise_too() -> None:
    captured = tj.script(written_by_hand)
    for _ in range(3):
        w, x = tj.ones(3, requires_grad=True), tj.ones(3, requires_grad=True)
        with pytest.raises(RuntimeError, match=WRITTEN):
            tj.autograd.grad(captured(w, x), [x])
    assert captured.report().cache_hits == 2
