"""Programs that write and keep what is from `.data`, which counts its own writes: of the call's own
tensors and of the caller's."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_list import programs_in
from tests.capture.programs_kept_by_regions import differentiated


def data_of_a_branch_that_a_backward_needs(jit):
    def branch(x, y):
        y = y.data
        if x.sum() < 2:
            y = y.detach()
        y += x
        return y.relu_()

    def left(x, y):
        for _ in range(3):
            y = y.data
            y += x
            if x.sum() > 2:
                break
        return y.sigmoid_()

    def written_later(x, y):
        y = y.data
        if x.sum() < 2:
            y = y.data
        y *= x
        z = y.exp_()
        y.detach().mul_(2)
        return z

    out = []
    for body in (branch, left, written_later):
        f = jit(body)
        for value in (0.5, 1.0, 0.1, 2.0):
            x, y = tj.full((3,), value, requires_grad=True), tj.arange(3.0)
            result = f(x * 1, y)
            try:
                result.sum().backward()
            except RuntimeError as error:
                out.append(error)
            out += [result.detach().clone(), x.grad, y, y._version]
    return out


def data_that_a_backward_needs_written_in_some_calls(jit):
    def branch(x):
        y = x.detach().clone().data
        y += x
        z = y.exp_()
        if x[0] > 0.5:
            z.detach().mul_(2)
        return z * 1

    def data_alone(x):
        d = x.exp().data
        y = d * x
        if x[0] > 0.5:
            d.detach().mul_(2)
        return y

    def counted_elsewhere(x):
        y = x.exp()
        if x[0] > 0.5:
            y.data.mul_(2)
        return y * 1

    def loop(x):
        d, k = x.exp().data, x.sum()
        y = d * x
        while k > 2:
            d.mul_(2)
            k = k - 1
        return y

    def some_iterations(x):
        d = x.exp().data
        y = d * x
        for row in x:
            if row > 1:
                d.mul_(2)
        return y

    return [differentiated(jit, f)
            for f in (branch, data_alone, counted_elsewhere, loop, some_iterations)]


def after_a_write(x, result, written):
    """What a backward gives when somebody wrote something since."""
    with tj.no_grad():
        written.mul_(2)
    try:
        result.sum().backward()
    except RuntimeError:
        return "RuntimeError"
    return x.grad


def data_of_the_caller_is_written(jit):
    def with_history(y, x):
        y += x
        return y.relu_()

    def without(y, x):
        y.mul_(2)
        return x.exp()

    def kept(y, x):
        return y * x

    def through_an_alias(y, x):
        y.detach().add_(1)
        return y * x

    def in_a_branch(y, x):
        if x.sum() > 2:
            y.mul_(2)
        return y * x

    def in_a_loop(y, x):
        for row in x.detach():
            y.add_(row)
        return y * x

    out = []
    for body in (with_history, without, kept, through_an_alias, in_a_branch, in_a_loop):
        f = jit(body)
        for number in (0.5, 1.0, 0.5, 1.0):
            for whose in ("data", "own", "both"):
                x, y = tj.full((3,), number, requires_grad=True), tj.ones(3)
                given = y if whose == "own" else y.data
                result = f(given, x * 1)
                out += [result.detach().clone(), y, y._version > 0, given._version > 0]
                written = tj.ones(3) if number == 1.0 else y if whose == "data" else given
                out.append(after_a_write(x, result, written))
    return out


def data_of_the_caller_and_what_it_is_of(jit):
    @jit
    def f(y, d, x):
        d.mul_(2)
        return y * x

    @jit
    def g(y, d, x):
        return d * x + y

    out = []
    for function in (f, g):
        for number in range(4):
            for other in (False, True):
                x, y = tj.ones(3, requires_grad=True), tj.ones(3)
                d = tj.ones(3).data if other else y.data
                result = function(y, d, x)
                out += [result.detach().clone(), y, d, y._version, d._version]
                out.append(after_a_write(x, result, y if number % 2 else d))
    return out


def data_that_is_given_away_and_needed(jit):
    def itself(x):
        d = x.exp().data
        return d * x, d

    def what_it_is_of(x):
        y = x.exp()
        return y.data * x, y

    def detached(x):
        d = x.exp().data
        return d * x, d.detach()

    def written(x):
        d = x.exp().data
        d += x
        z = d.exp_()
        return z * 1, z.detach()

    def seen(x):
        d = x.exp().data
        return d * x, d.view(3, 1)

    out = []
    for body in (itself, what_it_is_of, detached, written, seen):
        f = jit(body)
        for _ in range(3):
            x = tj.arange(3.0, requires_grad=True)
            result, other = f(x)
            out += [result.detach().clone(), after_a_write(x, result, other)]
    return out


def data_that_a_loop_may_replace(jit):
    def runs_perhaps(x, t):
        y = x.data
        while t.sum() <= 3:
            t = t + 1
            y = y * 2
        y += x
        return y

    def runs_once(x, t):
        y, z = x.data, x
        for _ in range(1):
            y, z = z * t.sum(), y
        z += 1
        return z

    out = []
    for body in (runs_perhaps, runs_once):
        f = jit(body)
        for start in (5.0, 0.0, 5.0):
            x, t = tj.arange(3.0), tj.full((2,), start)
            out += [f(x, t), x, x._version]
    return out


PROGRAMS = programs_in(globals())
