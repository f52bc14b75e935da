"""Second backwards through branches and loops: refused where the way that was taken kept something
that the first has freed, and gone through where it kept nothing.
"""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import leaf, tried
from tests.capture.program_list import programs_in
from tracejit.nn import functional as F


def again_and_again(jit, way):
    """Gradients of each result twice, then of a call on what an earlier one gave."""
    f, out = jit(way), []
    for value in (0.3, 1.0, 5.0, 9.0):
        for first in (0, 1):
            x = leaf(value)
            t = x
            for _ in range(2):
                results = f(t)
                results = results if isinstance(results, tuple) else (results,)
                order = (*results[first:], *results[:first])
                for result in order:
                    for _ in range(2):
                        out += [tried(tj.autograd.grad, result.sum(), x)]
                out += [tried((results[-1] * results[-1]).sum().backward), x.grad]
                t = results[0]
    return out


def freed_by_branches(jit):
    def one(t):
        v = t
        if v.sum() > 2:
            v = F.silu(t)
        return t - v

    def other(t):
        if t.sum() > 2:
            v = t + 2
        else:
            v = t.exp()
        return t - v

    return [again_and_again(jit, way) for way in (one, other)]


def freed_by_loops(jit):
    def no_iteration(t):
        v, k = t, 0
        while k < 3 and v.sum() > 2:
            k += 1
            v = F.silu(t)
        return t - v

    def unrolled(t):
        v = t
        for _ in range(3):
            if v.sum() > 2:
                v = F.silu(v)
            else:
                v = v - 0.5
        return v + t

    def side_in_some_iteration(t):
        v, k = t, 0
        while v.sum() > 1 and k < 4:
            k += 1
            if v.sum() > 4:
                v = v.tanh()
            v = v - 1
        return v

    def side_in_a_later_iteration(t):
        v, k = t, 0
        while v.sum() < 20 and k < 4:
            k += 1
            if v.sum() > 4:
                v = v.tanh()
            v = v + 1.5
        return v

    return [again_and_again(jit, way) for way in (
        no_iteration, unrolled, side_in_some_iteration, side_in_a_later_iteration)]


def freed_by_several_results(jit):
    def one_may_keep(t):
        a, b = t + t, t
        if t.sum() > 2:
            b = t.exp()
        return a + 1, b - t

    def one_keeps(t):
        a, b = t.tanh(), t
        if t.sum() > 2:
            b = t.exp()
        return a, b - t

    def in_turn(t):
        if t.sum() > 2:
            a, b = t.tanh(), t + 2
        else:
            a, b = t + 2, t.tanh()
        return a + 0.0, b + 0.0

    def beside_a_loop_that_may_not_run(t):
        a, b, k = t.tanh(), t + 1, 0
        while b.sum() > 3 and k < 3:
            k += 1
            b = b.exp() - 5
        return a + 0.0, b - t

    return [again_and_again(jit, way)
            for way in (one_may_keep, one_keeps, in_turn, beside_a_loop_that_may_not_run)]


def freed_within_the_call(jit):
    """Two in the call: whether the second one is refused depends on values."""
    def way(x):
        v = x
        if x.sum() > 2:
            v = x.exp()
        loss = (v - x).sum()
        loss.backward()
        loss.backward()
        return x.grad * 2

    def left_for_later(x):
        v = x
        if x.sum() > 2:
            v = x.exp()
        loss = (v - x).sum()
        loss.backward()
        return loss

    out = []
    f, g = jit(way), jit(left_for_later)
    for value in (5.0, 1.0, 5.0, 1.0):
        x, y = leaf(value), leaf(value)
        out += [tried(f, x), x.grad]
        loss = g(y)
        out += [y.grad, tried(loss.backward), y.grad]
    return out


PROGRAMS = programs_in(globals())
