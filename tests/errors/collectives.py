"""Reasons that concern processes which work together, in a group of one process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tracejit as tj
import tracejit.distributed as dist
from tests.errors.apart import apart
from tests.errors.control_flow import data
from tests.errors.entries import breaks


@contextlib.contextmanager
def group_of_one() -> Iterator[None]:
    """Give this process a default group, and take it away at the end."""
    dist.init_process_group("mpi", rank=0, world_size=1, store=dist.HashStore())
    try:
        yield
    finally:
        dist.destroy_process_group()


@apart(breaks("the branch runs as Python: it calls all_reduce, for which other processes wait"))
def collective_in_a_branch(jit):
    @jit
    def f(x):
        y = x * 2
        if x.sum() > 0:  # here
            dist.all_reduce(y)
        return y

    with group_of_one():
        f(data())


@apart(breaks("index fails for some values, and these come from other processes"))
def positions_of_other_processes(jit):
    @jit
    def f(x, i):
        dist.all_reduce(i)
        return x[i] * 2  # here

    with group_of_one():
        f(data(), tj.tensor([0]))


class SummedGradient(tj.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        grad = grad * 2
        dist.all_reduce(grad)
        return grad


@apart(breaks("the result's backward calls all_reduce, for which other processes wait"))
def collective_of_a_later_backward(jit):
    @jit
    def f(x):
        return SummedGradient.apply(x).sum()

    with group_of_one():
        f(data().requires_grad_())  # here


@apart(breaks(
    "the function uses a ProcessGroup that tracejit cannot find through an argument, global, "
    "closure or attribute"))
def group_of_a_slice(jit):
    with group_of_one():
        hidden = slice(dist.new_group([0]))

        @jit
        def f(x):
            y = x * 2
            dist.all_reduce(y, group=hidden.stop)
            return y

        f(data())  # here
