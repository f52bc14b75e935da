"""The engine's shorter way gives the gradients of the general way, bit for bit, and its errors."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit as tj
from tracejit.core.eager import plain_gradients, tape
from tracejit.core.ops import direct_calls
from tracejit.core.ops.record import REGISTRY
from tracejit.jit.runtime import eager_words

pytestmark = pytest.mark.skipif(not eager_words.available(), reason="no native code on this "
                                "interpreter")
CALLS = {
    "add": lambda x, y: x + y, "add itself": lambda x, y: x + x, "sub": lambda x, y: x - y,
    "number minus": lambda x, y: 2 - x, "neg": lambda x, y: -x, "mul": lambda x, y: x * y,
    "mul by a number": lambda x, y: x * 3, "square": lambda x, y: x * x,
    "power": lambda x, y: x**2,
    "div": lambda x, y: x / y, "div by a number": lambda x, y: x / 3,
    "exp": lambda x, y: x.exp(), "log": lambda x, y: x.log(), "tanh": lambda x, y: x.tanh(),
    "by a scalar": lambda x, y: x * y[0], "chain": lambda x, y: ((x * y + x).exp() - y).tanh() / y,
    "relu": lambda x, y: tj.relu(x * y), "sum": lambda x, y: (x * y).sum(),
    "sum of rows": lambda x, y: x.reshape(3, 4).sum(1), "mean": lambda x, y: (x + y).mean(),
    "sum, kept": lambda x, y: x.reshape(3, 4).sum(-1, keepdim=True),
    "mean of rows": lambda x, y: x.reshape(4, 3).mean(-1),
    "sum of columns": lambda x, y: x.reshape(3, 4).sum(0),
    "of one": lambda x, y: x.reshape(12, 1).sum(),
    "matmul": lambda x, y: x.reshape(3, 4) @ y.reshape(4, 3),
    "matmul with itself": lambda x, y: x.reshape(3, 4) @ x.reshape(3, 4).t(),
    "linear": lambda x, y: tj.nn.functional.linear(x.reshape(3, 4), y[:8].reshape(2, 4), y[:2]),
    "linear, rows": lambda x, y: tj.nn.functional.linear(x.reshape(1, 3, 4), y[:8].reshape(2, 4)),
    "broadcast": lambda x, y: x.reshape(1, -1) * y.reshape(-1, 1),
}  # fmt: skip
SPECIAL = [0.0, -0.0, 1.5, np.inf, -np.inf, np.nan, 1e-40, -3e38, 0.25, -2.0, 88.0, -100.0]


@pytest.fixture(autouse=True)
def natively():
    for op in REGISTRY.values():
        if op.fast:
            direct_calls.make(op)
    for function in direct_calls.functions.values():
        direct_calls.make(function)


def gradients(call, dtype):
    x = tj.tensor(SPECIAL, dtype=dtype, requires_grad=True)
    y = tj.tensor(SPECIAL[::-1], dtype=dtype, requires_grad=True)
    found = call(x, y)
    found.backward(tj.tensor(np.resize([1.0, -0.0, 0.5, np.nan, 3.0], tuple(found.shape)),
                             dtype=dtype))
    return [None if z.grad is None else z.grad.numpy().tobytes() for z in (x, y)]


@pytest.mark.parametrize("dtype", [tj.float32, tj.float64, tj.bfloat16, tj.complex64])
@pytest.mark.parametrize("name", list(CALLS))
def test_gradients_are_the_same_bits(name, dtype, monkeypatch):
    if name == "relu" and dtype is tj.complex64:
        return  # raises: it is for real numbers
    found = gradients(CALLS[name], dtype)
    general = 0
    for kind in tape._node_classes.values():
        general += kind.plain is not None
        monkeypatch.setattr(kind, "plain", None)
    assert general
    assert found == gradients(CALLS[name], dtype)


def test_most_nodes_go_the_shorter_way(monkeypatch):
    used = []

    def counted(node, grad, before):
        found = before(node, grad)
        used.append((type(node).__name__, found is not None))
        return found

    x = tj.ones(3, requires_grad=True)
    found = (tj.relu((x * x + 1).exp() - x).tanh().log() / 2).reshape(1, 3).mean(1)
    for kind in tape._node_classes.values():
        if kind.plain is not None:
            monkeypatch.setattr(kind, "plain",
                                lambda node, grad, before=kind.plain: counted(node, grad, before))
    found.sum().backward()
    names = "Sum Mean Div Log Tanh Relu Sub Exp Add Mul".split()
    assert used == [(f"{name}Backward0", True) for name in names]


def test_hooks_and_errors_stay():
    x = tj.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: grad * 10)
    z = y * y
    z.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [80.0] * 3
    z.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        z.sum().backward()
    y = x * 2
    z = y * y
    with tj.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        z.sum().backward()
    tj.autograd.grad((x * x).exp().sum(), x, create_graph=True)[0].sum().backward()


def test_a_leaf_does_not_take_over_a_gradient_that_somebody_holds():
    x, y = (tj.ones(3, requires_grad=True) for _ in range(2))
    start = tj.ones(3)
    (x + y).backward(start)
    x.grad.mul_(5)
    assert y.grad.tolist() == start.tolist() == [1.0] * 3
    assert plain_gradients.rules_of("cumsum") is None
