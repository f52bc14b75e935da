"""Programs that write what history within branches and loops keeps only if values say so: a
backward raises where, and only where, the plain function's does."""

from __future__ import annotations

import itertools

import tracejit as tj
from tests.capture.program_list import programs_in

VALUES = list(itertools.product((0.0, 0.5, 1.0, 3.0), repeat=3))[::3]


def differentiated(jit, f):
    f, out = jit(f), []
    for values in VALUES:
        x = tj.tensor(values, requires_grad=True)
        y = f(x)
        out.append(y.detach().clone())
        try:
            y.sum().backward()
        except RuntimeError:
            out.append("RuntimeError")
        out.append(x.grad)
    return out


def nested_branches_kept(jit):
    def f(x):
        a = x.flip(0)
        if a[0] < 2:
            if a[1] < 2:
                if a[2] < 0.2:
                    a = tj.exp(a)
                else:
                    a = a * 2
            else:
                a = a * 3
        a[0].neg_()
        return a

    return differentiated(jit, f)


def product_in_a_nested_branch_kept(jit):
    def f(x):
        a = x.flip(0)
        b = a * 1
        if a[0] < 2:
            if a[1] < 2:
                b = b * a
        a[0].neg_()
        return a + b

    return differentiated(jit, f)


def while_with_a_branch_kept(jit):
    def f(x):
        a = x.flip(0)
        while a.sum() < 10:
            if a[0] < 2:
                a = tj.exp(a)
            else:
                a = a * 2 + 1
        a[0].neg_()
        return a

    return differentiated(jit, f)


def for_with_a_branch_kept(jit):
    def f(x):
        a = x.flip(0)
        for r in x:
            if r < 2:
                a = tj.exp(a)
            else:
                a = a * 2
        a[0].neg_()
        return a

    return differentiated(jit, f)


def product_in_some_iterations_kept(jit):
    def f(x):
        a = x.flip(0)
        b = a * 1
        for r in x:
            if r < 2:
                b = b * a
            else:
                b = b * 2
        a[0].neg_()
        return a + b

    return differentiated(jit, f)


def while_in_a_branch_kept(jit):
    def f(x):
        a = x.flip(0)
        if a[0] < 2:
            while a.sum() < 3:
                a = tj.exp(a)
        a[0].neg_()
        return a

    return differentiated(jit, f)


def branch_in_while_in_a_branch_kept(jit):
    def f(x):
        a = x.flip(0)
        if a[0] < 2:
            while a.sum() < 3:
                if a[1] < 0.7:
                    a = tj.exp(a)
                else:
                    a = a + 1
        a[0].neg_()
        return a

    return differentiated(jit, f)


def chain_of_branches_kept(jit):
    def f(x):
        a = x.flip(0)
        b = a.sigmoid() if a[0] < 2 else a * 2
        c = b.tanh() if a[1] < 2 else b
        if a[2] < 0.2:
            c = c * 2
            if a[1] < 1.5:
                c = c.exp()
        b.neg_()
        return c

    return differentiated(jit, f)


def one_iteration_behind_kept(jit):
    def f(x):
        before, a = x * 2, x * 1
        for row in x:
            before = a
            a = a.exp() if row < 2 else a + 1
        before.neg_()
        return a

    return differentiated(jit, f)


def one_iteration_behind_read(jit):
    def f(x):
        before, a = x * 2, x * 1
        while a.sum() < 9:
            before = a
            a = a * a * 1.5 + 1 if a[0] < 2 else a + 1
        before.neg_()
        return a

    return differentiated(jit, f)


def writes_that_do_not_happen_in_each_call(jit):
    def branch(x, w, n):
        if x.sum() > n:
            x.mul_(2)
        return (x * w).sum()

    def either(x, w, n):
        if x.sum() > n:
            x[0].mul_(2)
        else:
            w = w * 2
            if w.sum() > 5:
                x.mul_(3)
        return (x * w).sum()

    def some_iterations(x, w, n):
        for row in range(20):
            if x.sum() + row > 20 + n:
                x.mul_(1.5)
        return (x * w).sum()

    def no_iteration(x, w, n):
        while x.sum() > n:
            x.sub_(1)
        return (x * w).sum()

    def nested(x, w, n):
        if x.sum() > n:
            for row in x:
                if row > 2:
                    x.sub_(1)
        return (x * w).sum()

    def of_a_choice(x, w, n):
        y = x if x.sum() > n else x * 2
        y.mul_(2)
        return (x * w).sum()

    def before_a_break(x, w, n):
        if x.sum() > n:
            x.mul_(2)
        y = (x * w).sum()
        x.tolist()
        if w.sum() > 7:
            x.mul_(2)
        return y

    out = []
    for body in (branch, either, some_iterations, no_iteration, nested, of_a_choice,
                 before_a_break):
        f = jit(body)
        for value, weight in ((1.0, 1.0), (-1.0, 1.0), (-1.0, 2.0), (3.0, 3.0)):
            for number in (0, 2):
                w, x = tj.full((3,), weight, requires_grad=True), tj.full((3,), value)
                loss = f(x, w, number)
                before = x._version
                other = f(x, w, number)
                out += [x.clone(), before > 0, x._version > before]
                for y in (loss, other):
                    try:
                        y.backward()
                    except RuntimeError:
                        out.append("RuntimeError")
                    out.append(w.grad)
    return out


def loops_that_may_not_write_what_may_be_another(jit):
    def f(y, z, rows, t):
        if z.sum() > 0:
            y = z
        for _ in rows:
            if t.sum() < 2:
                break
            y = y.relu_()
        return y

    def through_data(y, z, rows, t):
        y = z if z.sum() > 0 else y * 2
        while t.sum() < 2:
            y.data.mul_(2)
            t = t + 1
        return y * 2

    def of_rows(y, z, rows, t):
        y = y * 1 if z.sum() > 0 else z
        for row in rows:
            if row.sum() > t.sum():
                y.add_(row)
        return y

    out = []
    for body in (f, through_data, of_rows):
        f = jit(body)
        for number in (1.0, 3.0, 1.5, 9.0):
            for value in (1.0, -1.0):
                y, z = tj.ones(2), tj.full((2,), value)
                for _ in range(2):
                    result = f(y, z, tj.arange(8.0).reshape(4, 2), tj.tensor([number]))
                    out += [result, y, z, y._version > 0, z._version > 0]
    return out


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


PROGRAMS = programs_in(globals())
