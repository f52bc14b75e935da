"""Programs with control flow take one compile and no break: Newton, RAdam, clipping, RNN, sizes,
returns out of loops, numbers that branches choose."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tracejit as tj
from tests.capture import programs_choices, programs_returns
from tests.capture.program_inputs import data, filled, weights
from tests.capture.shown import assert_same, plain, seen
from tracejit import nn

F = nn.functional
MODES = ("graph", "compiled")


def both(program, mode="graph"):
    """Runs the program plainly and captured, which must show the same; returns the report."""
    made = []

    def jit(function):
        made.append(tj.script(function, mode=mode))
        return made[-1]

    expected = seen(program(plain))
    assert_same(seen(program(jit)), expected)
    (function,) = made
    return function.report()


def newton(jit):
    @jit
    def root(a, tolerance):
        y = a
        while (y * y - a).abs() > tolerance:
            y = 0.5 * (y + a / y)
        return y

    out = []
    for value, tolerance in ((2.0, 1e-4), (9.0, 1e-3), (100.0, 1e-5), (1e6, 1.0)):
        a = tj.tensor(value, dtype=tj.float64, requires_grad=True)
        y = root(a, tolerance)
        y.backward()
        assert abs(y.item() - value**0.5) < tolerance and a.grad is not None
        out += [y, a.grad]
    return out


def radam(jit):
    """RAdam written as its authors do, with `if` on a tensor that counts steps."""
    w, step = tj.ones(3, requires_grad=True), tj.zeros((), dtype=tj.float64)
    mean, square = tj.zeros(3), tj.zeros(3)
    beta1, beta2, longest = 0.9, 0.8, 2 / (1 - 0.8) - 1

    @jit
    def update(x):
        loss = ((w * x - 1) ** 2).sum()
        (grad,) = tj.autograd.grad(loss, w)
        with tj.no_grad():
            step.add_(1)
            mean.mul_(beta1).add_(grad * (1 - beta1))
            square.mul_(beta2).add_(grad * grad * (1 - beta2))
            corrected = mean / (1 - beta1**step)
            rho = longest - 2 * step * beta2**step / (1 - beta2**step)
            if rho > 5.0:
                kept = ((rho - 4) * (rho - 2) * longest) / ((longest - 4) * (longest - 2) * rho)
                adaptive = (1 - beta2**step).sqrt() / (square.sqrt() + 1e-8)
                w.sub_(0.1 * corrected * adaptive * kept.sqrt())
            else:
                w.sub_(0.1 * corrected)
        return loss.detach(), rho > 5.0

    out = [update(tj.arange(3.0) + k) for k in range(9)]
    assert {bool(adaptive) for _, adaptive in out} == {False, True}
    return [*out, w, mean, square, step]


def scaled(parameters, factor):
    for p in parameters:
        p.grad.mul_(factor)


def clipping_by_a_function(jit):
    return clipping(jit, scaled)


def clipping_in_place(jit):
    return clipping(jit, None)


def clipping(jit, scale):
    model = filled(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))
    optimizer = tj.optim.SGD(model.parameters(), lr=0.1)

    @jit
    def step(x, limit):
        optimizer.zero_grad()
        loss = (model(x) ** 2).sum()
        loss.backward()
        norm = tj.sqrt(sum((p.grad * p.grad).sum() for p in model.parameters()))
        if norm > limit:
            if scale is not None:
                scale(model.parameters(), limit / norm)
            else:
                for p in model.parameters():
                    p.grad.mul_(limit / norm)
        optimizer.step()
        return loss.detach(), norm > limit

    out = [step(data(5) * (k + 1), tj.tensor(1.0 + 3 * (k % 2))) for k in range(6)]
    assert {bool(clipped) for _, clipped in out} == {False, True}
    return [*out, *model.parameters()]


def recurrence(jit, lengths):
    w = weights()

    @jit
    def rnn(x):
        h, outputs = tj.zeros(3), []
        for t in range(x.shape[0]):
            h = tj.tanh(x[t] + h @ w)
            outputs.append(h)
        return tj.stack(outputs), h

    out = []
    for length in lengths:
        x = data(length).requires_grad_()
        outputs, last = rnn(x)
        (outputs.sum() + last.sum()).backward()
        out += [outputs, last, x.grad]
    return [*out, w]


def before_each(jit, lengths):
    """The row before each, the last one before the first."""

    @jit
    def f(x):
        total = tj.zeros(3)
        for t in range(x.shape[0]):
            total = total * 0.5 + x[t] * x[t - 1]
        return total

    return [f(data(length)) for length in lengths]


def library_radam(jit):
    model = filled(nn.Linear(3, 2))
    optimizer = tj.optim.RAdam(model.parameters(), lr=0.1, betas=(0.9, 0.8))

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return [[step(data(5)) for _ in range(9)], *model.parameters()]


ONE_PROGRAM = {
    "Newton's method with a tolerance": newton,
    "RAdam's branch": radam,
    "RAdam of the library": library_radam,
    "clipping by if norm > limit": clipping_in_place,
    "clipping by if norm > limit in a function": clipping_by_a_function,
    "RNN over T=8 and T=512": functools.partial(recurrence, lengths=(8, 512, 9)),
    "return out of a loop, or its end": programs_returns.return_or_run_on,
    "return out of a loop with weights": programs_returns.return_with_weights,
    "return of a structure": programs_returns.return_of_several_values,
    "return out of a loop in a loop": programs_returns.return_from_a_loop_in_a_loop,
    "return out of while True": programs_returns.return_from_while_true,
    "break, returns and else": programs_returns.two_returns_and_a_break,
    "break of an inner loop with else": programs_returns.break_from_a_loop_in_a_loop,
    "number that a branch chooses": programs_choices.int_chosen,
    "counters under conditions": programs_choices.counter_under_a_condition_in_a_loop,
    "rows before each, round the end": functools.partial(before_each, lengths=(20, 8, 33)),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [*ONE_PROGRAM])
def test_one_compile_and_no_break(name, mode):
    report = both(ONE_PROGRAM[name], mode)
    assert (report.compiles, report.breaks) == (1, []), str(report)


def nodes(lengths):
    """Nodes of a program recorded over these lengths, those of its regions included."""
    tj.manual_seed(0)
    made = []

    def jit(function):
        made.append(tj.script(function, mode="graph"))
        return made[-1]

    recurrence(jit, lengths)
    return [len(str(graph).splitlines()) for graph in made[0].graphs.values()]


def test_a_longer_sequence_makes_no_longer_program():
    short = nodes((8,))
    assert short == nodes((512,)) and min(short) > 5


def mlp(jit, sizes):
    model = filled(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)))
    optimizer = tj.optim.AdamW(model.parameters(), lr=0.01)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y, reduction="sum")
        loss.backward()
        optimizer.step()
        return loss.detach()

    out = [step(data(size), tj.arange(size) % 2) for size in sizes]
    return [*out, *model.parameters()]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sizes", [(0, 1, 2, 7, 64, 1000), (64, 7, 1000, 2, 1, 0), (1, 1000, 0)])
def test_every_batch_size_is_one_program_or_two(sizes, mode):
    report = both(functools.partial(mlp, sizes=sizes), mode)
    assert report.compiles <= 2 and not report.breaks, str(report)


def test_gradients_of_newton_are_those_of_the_root():
    root = tj.script(lambda a: newton_root(a))
    for value in np.linspace(1.5, 40.0, 7):
        a = tj.tensor(value, dtype=tj.float64, requires_grad=True)
        root(a).backward()
        assert a.grad.item() == pytest.approx(0.5 / value**0.5, rel=1e-4)
    assert root.report().compiles == 1


def newton_root(a):
    y = a
    while (y * y - a).abs() > 1e-9:
        y = 0.5 * (y + a / y)
    return y
