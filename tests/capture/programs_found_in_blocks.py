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


def while_loops_in_one_another_whose_backward_is_no_part_of_the_graph(jit):
    def body(x, y, z):
        t = tj.zeros(())
        while t < 5:
            t = t + 1
            k = 0
            while k < 2 and y.sum() > x.sum():
                k += 1
                y = tj.log1p(y)
            else:
                z = z + (x @ z).sum()
        return z

    f, out = jit(body), []
    for sign in (-1.0, 1.0, -0.5):
        x, y, z = [tj.full((3,), v).requires_grad_() for v in (sign, 0.5, 1.0)]
        f(x, y, z).sum().backward()
        out += [x.grad, y.grad, z.grad]
    return out


def second_backward_through_blocks_that_keep_nothing(jit):
    def branch(x, c):
        if c.sum() > 0:
            x = x + 1
        return x.sum()

    def loop(x, c):
        for row in c:
            x = x + row
        return x.sum()

    def open_loop(x, c):
        n = c.sum()
        while n < 5:
            n = n + 1
            x = x + n
        return x.sum()

    def keeping(x, c):
        if c.sum() > 0:
            x, y = x + 1, x * x
        else:
            x, y = x - 1, x * 3
        for row in c:
            y = y + row
        return x.sum(), y.sum()

    out = []
    for body in (branch, loop, open_loop, keeping):
        f = jit(body)
        for n in (1.0, -1.0, 2.0):
            x = tj.ones(3, requires_grad=True)
            y = f(x, tj.tensor([n, n, 2 * n]))
            for z in y if isinstance(y, tuple) else (y, y, y):
                try:
                    z.backward(retain_graph=False)
                    z.backward()
                except RuntimeError as error:
                    out.append(str(error)[:40])
            out.append(x.grad)
    return out


def leaf_chosen_where_no_gradients_are_recorded(jit):
    def branch(x, y):
        with tj.no_grad():
            z = y * 2 if x.sum() > 0 else y
        return z * 3

    def branch_of_two(x, y):
        k = y * 2
        with tj.no_grad():
            if x.sum() > 0:
                k = y
        return k * 3

    def open_loop(x, y):
        z = y
        with tj.no_grad():
            t = x.sum()
            while t > 0:
                t = t - 1
                z = z + 1
        return z * 3

    def found_in_a_loop(x, y):
        with tj.no_grad():
            for row in x:
                if row.sum() > 1:
                    break
                y = y + row
        return y * 2

    def returned_from_a_loop(x, y):
        def found():
            z = y
            with tj.no_grad():
                for row in x:
                    if row.sum() > 1:
                        return z
                    z = z + 1
                return z

        return found() * 2

    def elements_with_a_history(x, y):
        rows = []
        with tj.no_grad():
            for row in x:
                with tj.enable_grad():
                    rows.append(y * row)
        return tj.stack(rows)

    out = []
    for body in (branch, branch_of_two, open_loop, found_in_a_loop, returned_from_a_loop,
                 elements_with_a_history):
        f = jit(body)
        for sign in (1.0, -1.0, 2.0):
            x, y = sign * data(3), tj.full((3,), 0.5).requires_grad_()
            z = f(x, y)
            out.append(z)
            if z.requires_grad:
                z.sum().backward()
            out.append(y.grad)
    return out


def _gradients(bodies, jit):
    """Gradients, or why there are none, of each `body(x, y)`, which may write `x`."""
    out = []
    for body in bodies:
        f = jit(body)
        for sign in (1.0, -1.0, 0.5):
            x, y = sign * data(3), tj.full((3,), 0.5).requires_grad_()
            try:
                f(x, y).sum().backward()
            except RuntimeError as error:
                out.append(str(error)[:50])
            out += [x, y.grad]
    return out


def what_branches_and_loops_keep_is_written_later(jit):
    def both_sides(x, y):
        z = y * x[0] if x.sum() > 0 else y * x[0] * 2
        x.div_(2)
        return z

    def one_side(x, y):
        z = y * x[0] if x.sum() > 0 else y + 3
        x.div_(2)
        return z

    def result_of_one_side(x, y):
        z = y.exp() if x.sum() > 0 else y.exp() * 1
        z.mul_(2)
        return z

    def loop(x, y):
        z = w = y
        for row in x:
            z, w = z * row, w + 1
        x.div_(2)
        return z if x.shape[0] > 2 else w

    def another_variable_of_a_loop(x, y):
        z = w = y
        for row in x:
            z, w = z * row, w + 1
        x.div_(2)
        return w

    def open_loop(x, y):
        t = x.sum()
        while t > 0:
            t = t - 1
            y = y * x[0]
        x.div_(2)
        return y

    def backward_inside(x, y):
        x = x * 1
        z = y * x[0] if x.sum() > 0 else y + 1
        loss = z.sum()
        x.div_(2)
        loss.backward()
        return z.detach()

    return _gradients([both_sides, one_side, result_of_one_side, loop, another_variable_of_a_loop,
                       open_loop, backward_inside], jit)


def what_inner_blocks_keep_is_written_by_outer_ones(jit):
    def branch_in_a_loop(x, y):
        for row in x.clone():
            x.div_(2)
            if row.sum() > 0:
                y = y * x[0]
            else:
                y = y * x[0] * 2
        return y

    def loop_in_a_loop(x, y):
        for _ in x.clone():
            x.div_(2)
            for _ in x.clone():
                y = y * x[0]
        return y

    def open_loop_in_an_open_loop(x, y):
        t = tj.zeros(())
        while t < 3:
            t = t + 1
            x.div_(2)
            u = x.sum()
            while u > 0:
                u = u - 1
                y = y * x[0]
        return y

    def written_in_a_branch(x, y):
        for _ in x.clone():
            y = y * x[0]
        if x.sum() > 0:
            x.div_(2)
        return y

    def branch_in_a_branch(x, y):
        if x.sum() > 0:
            y = y * x[0] if x.sum() > 1 else y * x[0] * 2
            x.div_(2)
        else:
            y = y * 3
        return y

    return _gradients([branch_in_a_loop, loop_in_a_loop, open_loop_in_an_open_loop,
                       written_in_a_branch, branch_in_a_branch], jit)


def variable_that_was_found_to_be_another_one_is_asked_again(jit):
    @jit
    def f(x, bound, seen):
        y, k = x, 0
        while k < 4 and x is y:
            k += 1
            seen.append(k)
            if not (x > bound).any():
                y = y + 1
        return k, y

    out = []
    for bound in (0.0, 2.0, 0.5):
        seen = []
        x = tj.ones(2)
        k, y = f(x, bound, seen)
        out += [k, y, y is x, seen]
    return out


def loop_over_an_iterator_that_is_left_and_used_again(jit):
    def body(x):
        items = iter([1.0, 2.0, 3.0, 4.0])
        for k in items:
            x = x + k
            if x.sum() > 5:
                break
        return x, list(items)

    class Steps:
        def __init__(self):
            self.left = iter([1.0, 2.0, 3.0, 4.0])

        def __iter__(self):
            return self.left

    @jit
    def held(x, steps):
        for k in steps:
            x = x + k
            if x.sum() > 5:
                break
        return x

    f, out = jit(body), []
    for start in (0.0, 4.0):
        steps = Steps()
        out += [held(tj.full((2,), start), steps), list(steps)]
    for start in (0.0, 4.0, -9.0):
        out += f(tj.full((2,), start))
    return out


def variables_of_a_side_that_raises(jit):
    @jit
    def returned(x, table):
        try:
            if x.sum() > 3:
                return x
            x = x + 1
            x = x + table["none"]
        except KeyError:
            pass
        return x

    @jit
    def jumped(x, table):
        for _ in range(3):
            try:
                if x.sum() > 30:
                    break
                x = x + 1
                table["n"] = x
                x = x + table["none"]
            except KeyError:
                x = x * 2
        return x

    @jit
    def one_side(x, table):
        try:
            if x.sum() > 3:
                x = x + 1
                x = x + table["none"]
        except KeyError:
            x = x * 10
        finally:
            x = x - 1
        return x

    out = []
    for f in (returned, jumped, one_side):
        for scale in (3.0, 1.0, 3.0, -1.0, 1.0):
            table = {}
            out += [f(tj.arange(3.0) * scale, table), table]
    return out


def one_of_two_variables_kept_by_an_inner_loop(jit):
    @jit
    def f(x, y, t, rows):
        for _ in range(rows.shape[0]):
            x = y
            while t.sum() <= 3:
                t = t + 1
                y = y * 2
        return x, y

    @jit
    def swapped(x, y, t, rows):
        z = y
        for row in rows:
            x, z = z, x
            if row.sum() > t.sum():
                y = x
        return x, y, z

    out = []
    for g in (f, swapped):
        for t in (-1.0, 0.0, 5.0, 40.0):
            x, y = tj.ones(4), tj.arange(4.0)
            found = g(x, y, tj.full((1,), t), tj.arange(12.0).view(6, 2))
            out += [found, [a is b for a in (*found, x, y) for b in (*found, x, y)]]
    return out


PROGRAMS = programs_in(globals())
