"""Pairs of programs that work together with other processes: before and after a hint."""

from __future__ import annotations

import tracejit as tj
import tracejit.distributed as dist
from tests.errors.collectives import SummedGradient, group_of_one
from tests.errors.control_flow import data
from tests.errors.pairs import after, before


@before("it calls all_reduce, for which other processes wait", outside=True)
def _(jit, x):
    @jit
    def f(x):
        y = x * 2
        if x.sum() > 0:
            y = y + 1
            dist.all_reduce(y)
        return y

    with group_of_one():
        return f(x)


@after
def _(jit, x):
    @jit
    def f(x):
        y = x * 2
        if x.sum() > 0:
            y = y + 1
        dist.all_reduce(y)
        return y

    with group_of_one():
        return f(x)


@before("and these come from other processes", lambda: (data(), tj.tensor([0])), outside=True)
def _(jit, x, i):
    @jit
    def f(x, i):
        dist.all_reduce(i)
        return x[i] * 2

    with group_of_one():
        return f(x, i)


@after
def _(jit, x, i):
    f = jit(lambda x, i: x[i] * 2)
    with group_of_one():
        dist.all_reduce(i)
        return f(x, i)


@before("the result's backward calls all_reduce", outside=True)
def _(jit, x):
    w = x.requires_grad_()
    f = jit(lambda w: SummedGradient.apply(w).sum())
    with group_of_one():
        f(w).backward()
        return w.grad


@after
def _(jit, x):
    w = x.requires_grad_()

    @jit
    def f(w):
        SummedGradient.apply(w).sum().backward()

    with group_of_one():
        f(w)
        return w.grad
