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


PROGRAMS = programs_in(globals())
