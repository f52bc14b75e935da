"""Programs found by random ones whose blocks stand in one another: loops, branches, what they
share."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import data
from tests.capture.program_list import programs_in


def _states(body, jit):
    """The generator's state after calls of `body(x, y)` that draws."""
    f, out = jit(body), []
    tj.manual_seed(7)
    for n in (4, 4, 2, 5):
        f(data(n), data(n + 1))
        out.append(tj.get_rng_state())
    return out


def inner_loop_alone_draws(jit):
    def body(x, y):
        for _ in x:
            for row in y:
                tj.randn_like(row)

    return _states(body, jit)


def loop_in_a_branch_draws(jit):
    def body(x, y):
        if x.sum() > 0:
            for row in y:
                tj.randn_like(row)

    return _states(body, jit)


def loop_in_a_while_draws(jit):
    def body(x, y):
        left = x.abs().sum()
        while left > 1:
            left = left / 2
            for row in y:
                tj.rand_like(row)

    return _states(body, jit)


PROGRAMS = programs_in(globals())
