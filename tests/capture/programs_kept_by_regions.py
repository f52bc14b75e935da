"""Programs that write what history within branches and loops keeps only if values say so: a
backward raises where, and only where, the plain function's does."""

from __future__ import annotations

import itertools

import tracejit as tj
from tests.capture.program_inputs import leaf, tried
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


def writes_to_what_may_be_kept(jit):
    def one_of_two(x):
        y = x.exp()
        z = y.detach() if x[0] > 0.5 else y.detach() * 2
        z.mul_(2)
        return y * 1

    def best_before(x):
        best = x * 2
        y = best.exp()
        for row in x.detach():
            if row > 1:
                best = y
        with tj.no_grad():
            best.add_(1)
        return y + 1

    def best_without_history(x):
        y, best = x * 1, x.detach() * 2
        for row in x.detach():
            if row > 5:
                best = y.detach()
            y = y * y
        best.add_(1)
        return y

    return [differentiated(jit, f) for f in (one_of_two, best_before, best_without_history)]


def results_that_a_side_keeps(jit):
    def detached(x):
        if x[0] > 0.5:
            y = x.exp()
            w, z = y * 1, y.detach()
        else:
            w, z = x * 1, x.detach() * 1
        z.mul_(2)
        return w

    def nested(x):
        if x[1] < 2:
            y = x.exp()
            w, z = y * 1, y if x[0] > 0.5 else y * 2
        else:
            w, z = x * 1, x * 3
        with tj.no_grad():
            z.mul_(2)
        return w

    def nested_and_detached(x):
        if x[1] < 2:
            y = x.exp()
            w, z = y * 1, y.detach() if x[0] > 0.5 else y.detach() * 2
        else:
            w, z = x * 1, x.detach() * 3
        z.mul_(2)
        return w

    return [differentiated(jit, f) for f in (detached, nested, nested_and_detached)]


def leaves_written_that_no_side_keeps(jit):
    def of_a_branch(x, c):
        y = x
        if c.sum() > 0:
            y = x * 2
        z = y * y
        with tj.no_grad():
            x.add_(1)
        return z

    def of_a_loop(x, c):
        y, k = x * 2, c.sum()
        while k > -3:
            y = y + x
            k = k - 1
        with tj.no_grad():
            x.add_(1)
        return y

    def within(x, c):
        y = x * 2 if c.sum() > 0 else x + 1
        with tj.no_grad():
            x.add_(1)
        y.sum().backward()
        return x.grad * 1

    out = []
    for f in (jit(of_a_branch), jit(of_a_loop), jit(within)):
        for value in (1.0, -1.0, 2.0, -2.0):
            x = leaf(1.0, 2.0)
            y = f(x, tj.tensor([value]))
            out += [y, x, tried(y.sum().backward) if y.requires_grad else None, x.grad]
    return out


PROGRAMS = programs_in(globals())
