"""`autograd.grad(..., is_grads_batched=True)`: what it gives and refuses, as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import tracejit

CALLS = """
grad(y, x, t.eye(3), is_grads_batched=True)
grad((y, q), (x, z), (t.eye(3), t.ones(3, 3)), is_grads_batched=True)
grad(grad(y, x, t.eye(3), is_grads_batched=True, create_graph=True)[0].sum(), x)
grad(y, x, is_grads_batched=True)
grad(y, x, t.ones(3), is_grads_batched=True)
grad(q, (x, z), t.eye(3), is_grads_batched=True)
grad(q, (x, z), t.eye(3), is_grads_batched=True, allow_unused=True)
grad(q, (x, z), t.eye(3), is_grads_batched=True, materialize_grads=True)
grad(q.reshape(3, 1), x, t.ones(2, 3, 1), is_grads_batched=True)
(grad(y, x, t.eye(3), is_grads_batched=True), grad(y, x, t.eye(3), is_grads_batched=True))
grad(y, x, t.eye(3), is_grads_batched=True, retain_graph=True), grad(y, x, t.eye(3)[0])
""".strip().split("\n")


def told(t: Any, call: str) -> str:
    x = t.tensor([1.0, 2.0, 3.0], requires_grad=True)
    z = t.ones(2, requires_grad=True)
    given = {"t": t, "grad": t.autograd.grad, "x": x, "z": z, "y": x.sin() * z.sum(), "q": x**2}
    try:
        return repr(eval(call, given)).replace("torch.", "tracejit.")
    except RuntimeError as error:
        return str(error).replace("torch.", "tracejit.")


@pytest.mark.oracle
@pytest.mark.parametrize("call", CALLS)
def test_gradients_of_many_at_once_are_those_of_pytorch(call: str) -> None:
    torch = pytest.importorskip("torch")
    assert told(tracejit, call) == told(torch, call)


def test_captured() -> None:
    def jacobian(x: Any) -> Any:
        x = x.detach().requires_grad_()
        y = (x.sin() * x.sum()).softmax(0)
        return tracejit.autograd.grad(y, x, tracejit.eye(x.shape[0]), is_grads_batched=True)[0]

    run = tracejit.script(jacobian)
    for n in (3, 5, 3):
        x = tracejit.randn(n)
        assert tracejit.allclose(run(x), jacobian(x), atol=1e-6)
    assert not run.report().breaks
