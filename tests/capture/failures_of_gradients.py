"""Seeded failures of gradients: leaves, saved tensors, hooks, custom functions (C7).

The form is that of `failures_of_ops`: calls that work, the call that fails, what can be seen.
"""

from __future__ import annotations

import tracejit as tj
from tests.capture.failures_of_ops import Box, Failure


def write_to_a_leaf(jit):
    w = tj.ones(2, requires_grad=True)
    box = Box(calls=0.0)

    @jit
    def f(x, wrong):
        box.calls = box.calls + 1
        x.add_(1)
        if wrong:
            w.mul_(2)
        return (x * w).sum()

    x = tj.ones(2)
    return Failure(lambda: f(x, False), lambda: f(x, True), lambda: [box.calls, x, w, w._version])


def saved_tensor_written_inside(jit):
    w = tj.ones(2, requires_grad=True)
    count = tj.zeros(1)

    @jit
    def f(x, wrong):
        count.add_(1)
        y = (w * x).exp()
        if wrong:
            y.add_(1)
        y.sum().backward()
        return y.detach()

    return Failure(
        lambda: f(tj.ones(2), False), lambda: f(tj.ones(2), True), lambda: [count, w, w.grad]
    )


def saved_tensor_written_outside(jit):
    w = tj.ones(2, requires_grad=True)

    @jit
    def f(x):
        return (w * x).exp().sum()

    def step(wrong):
        x = tj.ones(2)
        y = f(x)
        if wrong:
            x.add_(1)
        y.backward()
        return y.detach()

    return Failure(lambda: step(False), lambda: step(True), lambda: [w, w.grad])


def backward_of_many_elements(jit):
    w = tj.ones(2, requires_grad=True)
    x = tj.ones(2)

    @jit
    def f(wrong):
        x.mul_(3)
        y = w * x
        (y if wrong else y.sum()).backward()
        return y.detach()

    return Failure(lambda: f(False), lambda: f(True), lambda: [x, w.grad])


def backward_twice_inside(jit):
    w = tj.ones(2, requires_grad=True)

    @jit
    def f(x, wrong):
        y = (w * x).pow(2).sum()
        y.backward()
        x.add_(1)
        if wrong:
            y.backward()
        return y.detach()

    x = tj.ones(2)
    return Failure(lambda: f(x, False), lambda: f(x, True), lambda: [x, w.grad])


def backward_twice_outside(jit):
    w = tj.ones(2, requires_grad=True)

    @jit
    def f(x):
        return (w * x).exp().sum()

    def step(wrong):
        y = f(tj.ones(2))
        y.backward()
        if wrong:
            y.backward()
        return y.detach()

    return Failure(lambda: step(False), lambda: step(True), lambda: [w.grad])


def backward_without_history(jit):
    count = tj.zeros(1)

    @jit
    def f(x):
        count.add_(1)
        y = (x * 2).sum()
        y.backward()
        return y.detach()

    x = tj.ones(2, requires_grad=True)
    return Failure(lambda: f(x), lambda: f(tj.ones(2)), lambda: [count, x.grad])


def nan_in_anomaly_mode(jit):
    w = tj.tensor([1.0, 0.0], requires_grad=True)
    count = tj.zeros(1)

    @jit
    def f(x):
        count.add_(1)
        return (w * x).sqrt().mul(0.0).sum()

    def step(x):
        with tj.autograd.detect_anomaly():
            f(x).backward()
        return w.grad.clone()

    def good():
        y = f(tj.tensor([1.0, 1.0]))
        return y.detach()

    return Failure(good, lambda: step(tj.tensor([1.0, 1.0])), lambda: [count, w.grad])


def nan_in_anomaly_mode_inside(jit):
    w = tj.tensor([1.0, 4.0], requires_grad=True)
    count = tj.zeros(1)

    @jit
    def f(x):
        count.add_(1)
        with tj.autograd.detect_anomaly():
            (w * x).sqrt().mul(x).sum().backward()
        return w.grad.clone()

    return Failure(
        lambda: f(tj.tensor([1.0, 1.0])),
        lambda: f(tj.tensor([1.0, 0.0])),
        lambda: [count, w.grad],
    )


def hook_that_raises_inside(jit):
    w = tj.ones(2, requires_grad=True)
    box = Box(wrong=False)

    def look(grad):
        if box.wrong:
            raise LookupError("the hook does not like it")
        return grad * 2

    @jit
    def f(x):
        x.add_(1)
        y = w * x
        y.register_hook(look)
        y.sum().backward()
        return y.detach()

    x = tj.ones(2)

    def bad():
        box.wrong = True
        try:
            return f(x)
        finally:
            box.wrong = False

    return Failure(lambda: f(x), bad, lambda: [x, w.grad])


def hook_that_raises_outside(jit):
    w = tj.ones(2, requires_grad=True)
    b = tj.ones(2, requires_grad=True)
    box = Box(wrong=False)

    def look(grad):
        if box.wrong:
            raise LookupError("the hook does not like it")
        return grad * 2

    w.register_hook(look)

    @jit
    def f(x):
        return (w * x + b).sum()

    def step(wrong):
        box.wrong = wrong
        y = f(tj.ones(2))
        y.backward()
        return y.detach()

    return Failure(lambda: step(False), lambda: step(True), lambda: [w.grad])


class Picky(tj.autograd.Function):
    """Raises where its own code does not like what it sees."""

    @staticmethod
    def forward(ctx, x, forward, backward):
        ctx.backward_fails = backward
        if forward:
            raise ArithmeticError("forward does not like it")
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        if ctx.backward_fails:
            raise ArithmeticError("backward does not like it")
        return grad * 2, None, None


def custom_forward_that_raises(jit):
    x = tj.ones(2)

    @jit
    def f(wrong):
        x.add_(1)
        y = Picky.apply(x, wrong, False)
        x.add_(1)
        return y

    return Failure(lambda: f(False), lambda: f(True), lambda: [x])


def custom_backward_that_raises(jit):
    w = tj.ones(2, requires_grad=True)

    @jit
    def f(x, wrong):
        x.add_(1)
        y = Picky.apply(w * x, False, wrong)
        y.sum().backward()
        x.add_(1)
        return y.detach()

    x = tj.ones(2)
    return Failure(lambda: f(x, False), lambda: f(x, True), lambda: [x, w.grad])


PROGRAMS = [
    write_to_a_leaf,
    saved_tensor_written_inside,
    saved_tensor_written_outside,
    backward_of_many_elements,
    backward_twice_inside,
    backward_twice_outside,
    backward_without_history,
    nan_in_anomaly_mode,
    nan_in_anomaly_mode_inside,
    hook_that_raises_inside,
    hook_that_raises_outside,
    custom_forward_that_raises,
    custom_backward_that_raises,
]
