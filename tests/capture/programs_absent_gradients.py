"""Gradients that arrive in one case only, through history that must not be run in the other: its
derivative is infinite, it was overwritten, or hooks watch it.
"""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import MANY, leaf, tried
from tests.capture.program_list import programs_in

SUMS = (3.3, 0.2, -3.3)  # of the rows, which decide


def rows(total, count=MANY):
    return tj.linspace(-0.5, 0.5, count) + total / count


def ways_through(jit, way, counts=(MANY, 3)):
    """Gradients of what a function computes, where roots of 0 are part of its history."""

    @jit
    def within(x, t):
        way(x, t).backward()

    outside, out = jit(way), []
    for count in counts:
        for total in SUMS:
            for values in ((0.0, 0.0, 0.0), (1.0, 0.0, 2.0)):
                x, y = leaf(*values), leaf(*values)
                out += [tried(outside(x, rows(total, count)).backward), x.grad]
                out += [tried(within, y, rows(total, count)), y.grad]
    return out


def side_that_is_not_taken(jit):
    def way(x, t):
        y = x.sqrt()
        z = y * 2 if t.sum() > 1 else x * 3
        return z.sum()

    return ways_through(jit, way)


def sides_within_sides(jit):
    def way(x, t):
        y, z = x.sqrt(), x * 2
        if t.sum() > 0:
            z = y * 2 if t.sum() > 1 else z * 3
        elif t.sum() < -2:
            z = y
        return z.sum() + z[0]

    return ways_through(jit, way)


def results_of_which_one_is_used(jit):
    def way(x, t):
        z = x * 2
        if t.sum() > 1:
            a, b = z.sqrt(), z * 2
        else:
            a, b = z * 2, z.sqrt()
        return b.sum() if t[0] > -0.4 else a.sum()

    return ways_through(jit, way)


def branch_that_returns_early(jit):
    def way(x, t):
        y = x.sqrt()
        for r in t:
            if r > 0.6:
                return (y * r).sum()
        return (x * 3).sum()

    return ways_through(jit, way)


def variables_that_swap(jit):
    def way(x, t):
        a, b, c = x.sqrt(), x * 2, x * 3
        for r in t:
            a, b, c = b * r, c, a
        return a.sum()

    return ways_through(jit, way, (MANY, 3, 5))


def variable_that_the_loop_makes_anew(jit):
    def way(x, t):
        h = x * 1
        for r in t:
            z = (h * 0).sqrt()
            h = h + r
        return h.sum() if t.sum() < 1 else h.sum() + z.sum()

    return ways_through(jit, way)


def step_under_a_condition(jit):
    def way(x, t):
        h, w = x * 1, x.sqrt()
        for r in t:
            new = (h * 0).sqrt() + w
            h = new if r > 0.5 else h * 2
        return h.sum()

    return ways_through(jit, way)


def best_of_many(jit):
    def way(x, t):
        best = x * 2
        for r in t:
            y = (x * r.abs()).sqrt()
            if y.sum() > best.sum():
                best = y
        return best.sum()

    return ways_through(jit, way)


def loop_that_may_not_run(jit):
    def way(x, t):
        y, z, k = x.sqrt(), x * 2, t.sum()
        while k > 1:
            z, k = z + y, k - 1
        return z.sum()

    return ways_through(jit, way)


def rows_that_a_condition_leaves_out(jit):
    def way(x, t):
        m, h = (x * tj.ones(t.shape[0], 1)).sqrt(), x * 1
        for row, r in zip(m, t):
            if r > 9:
                h = h + row
        return h.sum()

    return ways_through(jit, way)


def elements_of_a_list_under_a_condition(jit):
    def way(x, t):
        w, out = x.sqrt(), []
        for r in t:
            out.append(w * r if r > 0.5 else x * 2)
        return tj.stack(out).sum()

    return ways_through(jit, way)


def history_overwritten_where_no_gradient_arrives(jit):
    def way(x, t):
        y = x.exp()
        z = y * 2
        y.mul_(2)
        if t.sum() > 1:
            z = x * 3
        return (z if t.sum() > -1 else y.exp()).sum()

    @jit
    def swapped(x, t):
        a, b = x.tanh(), x
        a.sqrt_().sqrt_()
        for _ in t:
            a, b = b * 2, a
        a.sum().backward()

    def tries(count):
        x = leaf(1.0, 2.0, 3.0)
        return [tried(swapped, x, rows(1.0, count)), x.grad]

    return [*ways_through(jit, way), [tries(count) for count in (MANY, MANY + 1, 3, 4)]]


def hooks_where_no_gradient_arrives(jit):
    seen = []

    @jit
    def f(x, t):
        y = x.sqrt()
        y.register_hook(lambda g: seen.append(g.sum().item()))
        z = x * 3
        z.retain_grad()
        (y * 2 if t.sum() > 1 else z).sum().backward()
        return z.grad

    return [[f(leaf(1.0, 4.0), rows(total)), list(seen)] for total in SUMS * 2]


def saved_and_then_written_under_a_condition(jit):
    def under_condition(y, t):
        with tj.no_grad():
            if t.sum() > 1:
                y.add_(1)

    def in_while(y, t):
        k = t.sum()
        while k > 1:
            k = k - 1
            y.detach().mul_(2)

    def in_both(y, t):
        with tj.no_grad():
            for r in t:
                if r > 0.6:
                    y.add_(1)

    def program(write):
        @jit
        def f(x, t):
            y = (x * 1).exp()
            write(y, t)
            y.sum().backward()

        out = []
        for total in SUMS:
            x = leaf(1.0, 2.0)
            out += [type(tried(f, x, rows(total))), x.grad]
        return out

    return [program(write) for write in (under_condition, in_while, in_both)]


def written_by_the_iteration_after(jit):
    def root(x, t):
        y, k = x * 2, t.sum()
        while k > 1:
            k = k - 1
            y.sqrt_()
            y = y
        return y

    def roots(x, t):
        y = x * 2
        for _ in t:
            y.sqrt_()
            y = y
        return y

    def buffer(x, t):
        seen, y = tj.ones(2), x * 1
        for r in t:
            with tj.no_grad():
                seen.add_(r)
            y = y * seen
        return y

    def program(way, count):
        @jit
        def f(x, t):
            way(x, t).sum().backward()

        out = []
        for total in (*SUMS, 1.5):
            x = leaf(1.0, 2.0)
            out += [type(tried(f, x, rows(total, count))), x.grad]
        return out

    return [program(way, count) for way in (root, roots, buffer) for count in (MANY, 3, 1)]


def writes_through_data(jit):
    """Nobody counts them: what history keeps may change so."""

    def own(x, t):
        y = (x * 1).exp()
        y.data.mul_(t[0])
        y.data[0] = 2.0
        return y.sum(), y._version

    def under_condition(x, t):
        y = (x * 1).exp()
        if t.sum() > 1:
            y.data.mul_(2)
        return y.sum(), y._version

    def in_loop(x, t):
        y = (x * 1).exp()
        for r in t:
            y.data.add_(r)
        return y.sum(), y._version

    def program(way):
        @jit
        def f(x, p, t):
            y, version = way(x, t)
            y.backward()
            p.data.mul_(t[0])
            return version, p._version

        out = []
        for total in SUMS:
            x, p = leaf(1.0, 2.0), leaf(3.0, 4.0)
            before = (p * p).sum()
            out += [tried(f, x, p, rows(total)), x.grad, tried(before.backward), p.grad]
            out += [p, p._version]
        return out

    return [program(way) for way in (own, under_condition, in_loop)]


def some_results(jit, way, values):
    """Gradients of some of a call's results, not of the others."""
    f, out = jit(way), []
    for value in values:
        x = leaf(value, 1.0)
        results = f(x)
        numbers = range(len(results))
        for chosen in ([[k] for k in numbers] + [[j, k] for j in numbers for k in range(j)]):
            for start in (x, x * 1):
                found = f(start)
                out += [tj.autograd.grad([found[k].sum() for k in chosen], x)[0]]
    return out


def branches_of_which_some_results_are_used(jit):
    def in_turn(x):
        if x.sum() > 2:
            a, b = x.exp(), x * 2
        else:
            a, b = x * 2, x.exp()
        return a + 0.0, b + 0.0

    def nested(x):
        a, b = x * 1, x * 2
        if x.sum() > 0:
            b = b * 3
            if x.sum() > 2:
                a, b = a.exp(), b - 1
        return a + 0.0, b + 0.0, a * 2 + b

    return [some_results(jit, way, (0.5, 3.0, 200.0)) for way in (in_turn, nested)]


def loops_of_which_some_results_are_used(jit):
    def apart(x):
        a, b, k = x * 1, x * 1, 0
        while k < 2 and x.sum() > 0:
            k += 1
            a, b = a * 2, b.exp()
        return a + 0.0, b + 0.0

    def crossing(x):
        a, b = x * 1, x * 1
        for _ in range(MANY):
            a, b = b * 1.0, a.sin().sqrt()
        return a + 0.0, b + 0.0

    def one_of_the_other(x):
        a, b, k = x * 1, x * 1, 0
        while k < 2 and x.sum() > 0:
            k += 1
            a, b = a * b, b.exp()
        return a + 0.0, b + 0.0, a * 3

    def within_a_side(x):
        a, b, k = x * 1, x * 1, 0
        if x.sum() > 0:
            while k < 2 and x.sum() > 0:
                k += 1
                a, b = a * 2, b.exp()
        return a + 0.0, b + 0.0

    def of_a_list(x):
        b, rows = x * 1, []
        for r in x.expand(MANY, 2):
            b = b.exp()
            rows.append(r * 2)
        return tj.stack(rows), b

    def recurrent(x):
        h, c = x * 1, x * 1
        for r in x.expand(MANY, 2):
            c = c * r.sigmoid() + h * (1 - r.sigmoid())
            h = c.tanh() * r.sigmoid()
        return h + 0.0, c + 0.0

    t = tj.ones(2)

    def in_turn(x):
        c, b = -x, x
        for _ in range(2):
            k = 0
            while k < 3 and t.sum() > 0:
                k += 1
                c = x.clone()
            for row in t.expand(MANY, 2):
                b = x * (2 + row * 0)
        return c * 1, b

    return [some_results(jit, way, (0.5, 6.0, 200.0)) for way in (
        in_turn, apart, crossing, one_of_the_other, within_a_side, of_a_list, recurrent)]


PROGRAMS = programs_in(globals())
