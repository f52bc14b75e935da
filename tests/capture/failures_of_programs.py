"""Seeded failures of modules, optimizers and the user's own code (C7).

The form is that of `failures_of_ops`: calls that work, the call that fails, what can be seen.
"""

from __future__ import annotations

import tracejit as tj
from tests.capture.failures_of_ops import Box, Failure

F = tj.nn.functional


def attribute_that_is_not_there(jit):
    box = Box(scale=2.0, calls=0.0)

    @jit
    def f(x):
        box.calls = box.calls + 1
        x.mul_(2)
        return x * box.scale

    x = tj.ones(2)

    def bad():
        del box.scale
        try:
            return f(x)
        finally:
            box.scale = 2.0

    return Failure(lambda: f(x), bad, lambda: [x, vars(box)])


def attribute_no_tensor_has(jit):
    @jit
    def f(x, wrong):
        x.mul_(2)
        return x.nothing_like_it() if wrong else x.sum()

    x = tj.ones(2)
    return Failure(lambda: f(x, False), lambda: f(x, True), lambda: [x])


def key_that_is_not_there(jit):
    table = {"a": tj.ones(2)}
    seen = []

    @jit
    def f(key):
        table["a"].add_(1)
        seen.append(key)
        return table[key] * 2

    return Failure(lambda: f("a"), lambda: f("b"), lambda: [table, seen])


def argument_the_function_does_not_take(jit):
    @jit
    def f(x, scale=2.0):
        return x * scale

    x = tj.ones(2)
    return Failure(lambda: f(x, scale=3.0), lambda: f(x, factor=3.0), lambda: [x])


def argument_that_is_missing(jit):
    @jit
    def f(x, y):
        return x * y

    x = tj.ones(2)
    return Failure(lambda: f(x, x), lambda: f(x), lambda: [x])


def exception_after_writes(jit):
    x, box, rows = tj.arange(4.0), Box(total=tj.zeros(1), n=0), []

    @jit
    def f(wrong):
        x[1:3].mul_(2)
        box.n += 1
        box.total = box.total + x.sum()
        rows.append(x.clone())
        if wrong:
            raise ValueError(f"stopped after {box.n}")
        rows.clear()
        return x + tj.randn(4)

    return Failure(
        lambda: f(False), lambda: f(True), lambda: [x, x._version, box.total, box.n, rows]
    )


def decision_on_a_value(jit):
    x, box = tj.zeros(2), Box(n=0.0)

    @jit
    def f(limit):
        x.add_(1)
        box.n = box.n + 1
        if x.sum() > limit:
            raise OverflowError(f"sum {x.sum().item()} is too large")
        return x * 2

    return Failure(lambda: f(1000.0), lambda: f(0.0), lambda: [x, box.n])


def assertion(jit):
    x = tj.ones(3)

    @jit
    def f(y):
        x.add_(1)
        assert x.shape == y.shape, f"{tuple(x.shape)} is not {tuple(y.shape)}"
        return x + y

    return Failure(lambda: f(tj.ones(3)), lambda: f(tj.ones(1)), lambda: [x])


def cleanup_runs(jit):
    box = Box(busy=False, memory=tj.zeros(2))

    @jit
    def f(i):
        box.busy = True
        try:
            box.memory.add_(1)
            return tj.arange(4.0)[i]
        finally:
            box.memory.add_(10)
            box.busy = False

    return Failure(
        lambda: f(tj.tensor([1])), lambda: f(tj.tensor([9])), lambda: [box.busy, box.memory]
    )


def caught_then_raised_anew(jit):
    memory = tj.zeros(2)

    @jit
    def f(i):
        try:
            picked = tj.arange(4.0)[i]
        except IndexError as error:
            memory.add_(1)
            raise KeyError("no such row") from error
        return picked + memory.sum()

    return Failure(lambda: f(tj.tensor([1])), lambda: f(tj.tensor([9])), lambda: [memory])


def modes_left_by_an_exception(jit):
    w = tj.ones(2, requires_grad=True)

    @jit
    def f(i):
        with tj.no_grad():
            y = (w * 2)[i]
        return y * w.sum()

    return Failure(
        lambda: f(tj.tensor([1])).detach(),
        lambda: f(tj.tensor([5])),
        lambda: [tj.is_grad_enabled()],
    )


def recursion_without_end(jit):
    x = tj.ones(2)

    def down(y, depth):
        return y if depth == 0 else down(y, depth - 1) + 1

    @jit
    def f(depth):
        x.add_(1)
        return down(x, depth)

    return Failure(lambda: f(3), lambda: f(-1), lambda: [x])


class Inner(tj.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = tj.nn.Parameter(tj.ones(3, 2))
        self.calls = 0.0

    def forward(self, x):
        self.calls = self.calls + 1
        return x @ self.weight


class Middle(tj.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.register_buffer("seen", tj.zeros(1))

    def forward(self, x):
        self.seen.add_(1)
        return self.inner(x) + 1


def module_three_deep(jit):
    net = tj.nn.Sequential(tj.nn.Identity(), Middle())

    @jit
    def f(x):
        return net(x).detach()

    return Failure(
        lambda: f(tj.ones(4, 3)),
        lambda: f(tj.ones(4, 2)),
        lambda: [net[1].inner.calls, net[1].seen],
    )


def state_of_another_module(jit):
    net = tj.nn.Linear(2, 2)
    other = tj.nn.Linear(3, 2).state_dict()

    @jit
    def f(x, state):
        y = net(x).detach()
        if state is not None:
            net.load_state_dict(state)
        return y

    x = tj.ones(1, 2)
    return Failure(lambda: f(x, None), lambda: f(x, other), lambda: list(net.parameters()))


def training(jit):
    tj.manual_seed(3)
    net = tj.nn.Sequential(tj.nn.Linear(3, 4), tj.nn.Dropout(0.3), tj.nn.Linear(4, 3))
    optimizer = tj.optim.AdamW(net.parameters(), lr=0.1)
    count = Box(steps=0.0)

    @jit
    def step(x, y):
        count.steps = count.steps + 1
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def state():
        return [
            count.steps,
            list(net.parameters()),
            [p.grad for p in net.parameters()],
            optimizer.state_dict(),
        ]

    return step, state


def training_step_on_a_wrong_class(jit):
    step, state = training(jit)
    x = tj.randn(4, 3)
    return Failure(
        lambda: step(x, tj.tensor([0, 1, 2, 0])), lambda: step(x, tj.tensor([0, 1, 2, 3])), state
    )


def training_step_on_another_width(jit):
    step, state = training(jit)
    y = tj.tensor([0, 1])
    return Failure(lambda: step(tj.ones(2, 3), y), lambda: step(tj.ones(2, 5), y), state)


def clipping_of_what_is_not_finite(jit):
    w = tj.ones(2, requires_grad=True)
    optimizer = tj.optim.SGD([w], lr=0.1, momentum=0.9)

    @jit
    def step(x):
        optimizer.zero_grad()
        (w * x).sum().backward()
        tj.nn.utils.clip_grad_norm_([w], 1.0, error_if_nonfinite=True)
        optimizer.step()
        return w.detach().clone()

    return Failure(
        lambda: step(tj.ones(2)),
        lambda: step(tj.tensor([1.0, float("inf")])),
        lambda: [w, w.grad, optimizer.state_dict()],
    )


def captured_inside_captured(jit):
    memory = tj.zeros(1)

    @jit
    def inner(x, i):
        memory.add_(1)
        return x[i] * 2

    @jit
    def outer(x, i):
        memory.mul_(3)
        y = inner(x, i)
        memory.add_(100)
        return y

    x = tj.arange(3.0)
    return Failure(
        lambda: outer(x, tj.tensor([1])), lambda: outer(x, tj.tensor([3])), lambda: [memory]
    )


def later_iteration(jit):
    memory, seen = tj.zeros(3), []

    @jit
    def f(rows):
        for k, row in enumerate(rows):
            memory[row] = memory[row] + 1
            seen.append(k)
        return memory * 1

    good = [tj.tensor([k]) for k in (0, 1, 2)]
    return Failure(
        lambda: f(good), lambda: f([good[0], good[1], tj.tensor([3])]), lambda: [memory, seen]
    )


PROGRAMS = [
    attribute_that_is_not_there,
    attribute_no_tensor_has,
    key_that_is_not_there,
    argument_the_function_does_not_take,
    argument_that_is_missing,
    exception_after_writes,
    decision_on_a_value,
    assertion,
    cleanup_runs,
    caught_then_raised_anew,
    modes_left_by_an_exception,
    recursion_without_end,
    module_three_deep,
    state_of_another_module,
    training_step_on_a_wrong_class,
    training_step_on_another_width,
    clipping_of_what_is_not_finite,
    captured_inside_captured,
    later_iteration,
]
