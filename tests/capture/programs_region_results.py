"""Programs whose regions leave tensors that are one, views, or results that no gradient reaches."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import MANY, OTHER, TAKEN, leaf, shown, tried
from tests.capture.program_list import programs_in

# -- memory ----------------------------------------------------------------------------------------


def results_of_a_loop_that_are_one(jit):
    def argument(x):
        y = x * 0
        for _ in range(MANY):
            y = x
        return y, x

    def two(x):
        a = b = x * 2
        for _ in range(MANY):
            b = b + 1
            a = b
        return a, b

    def view(x):
        b = x * 2
        v = b[0]
        for _ in range(MANY):
            b = b + 1
            v = b[0]
        return v, b

    def opened(x):
        b, a = x * 2, x * 0
        while b.sum() < 50:
            b = b + 1
            a = x
        return a, b

    def initial(x):
        y = x
        while y.sum() < 0:
            y = y + 1
        return y, x

    def program(way):
        @jit
        def f(x):
            a, b = way(x)
            a += 1
            return a, b

        return shown(f)

    return [program(way) for way in (argument, two, view, opened, initial)]


def names_swapped_in_a_while_and_written(jit):
    @jit
    def f(x):
        a, b, n = x * 2, x * 3, 0
        kept = a
        while n < x[0]:
            a, b = b, a
            n += 1
        a += 1
        return a, b, kept

    return shown(f, inputs=[(float(n), 1.0, 2.0) for n in (0, 1, 2, 3)])


def memory_written_in_one_of_the_sides(jit):
    @jit
    def f(x, y):
        if x.sum() > 0:
            z = x * 2
        else:
            y.mul_(3)
            z = x - 1
        if x[0] > 0:
            y[1:].add_(1)
        else:
            x.neg_()
        return z, y * 1

    y = tj.tensor([1.0, 2.0, 3.0])
    return [shown(lambda x: f(x, y)), y]


def results_of_a_side_that_are_one(jit):
    def two(x):
        if x.sum() > 0:
            a = x * 2
            b = a
        else:
            a, b = x * 2, x * 3
        return a, b

    def view(x):
        if x.sum() > 0:
            a = x * 2
            b = a[0]
        else:
            a = x * 2
            b = a[0].clone()
        return a, b

    def program(way):
        @jit
        def f(x):
            a, b = way(x)
            a += 1
            return a, b

        return shown(f)

    return [program(way) for way in (two, view)]


def elements_that_are_written_later(jit):
    def before(x):
        kept, x = [], x.clone()
        for _ in range(MANY):
            x += 1
            kept.append(x)
        return kept

    def views(x):
        kept, x = [], x.clone()
        for _ in range(MANY):
            x += 1
            kept.append(x[0:2])
        return kept

    def rows(x):
        kept, y = [], x.reshape(1, 3).repeat(MANY, 1)
        for row in y:
            kept.append(row)
        y[0] = 100.0
        return kept

    def last(x):
        kept = []
        for i in range(MANY):
            y = x + i
            kept.append(y)
        y += 100
        return kept

    def twice(x):
        kept, more = [], []
        for i in range(MANY):
            y = x + i
            kept.append(y)
            more.append(y)
        kept[3] += 100
        return more

    def after(x):
        kept = []
        for i in range(MANY):
            y = x + i
            kept.append(y)
            y *= 2
        return kept

    def program(way):
        @jit
        def f(x):
            return tj.stack(way(x))

        return shown(f, inputs=(TAKEN, OTHER))

    return [program(way) for way in (before, views, rows, last, twice, after)]


def tensors_that_may_be_one_after_a_break(jit):
    def made(x, w):
        y = x + 1
        z = y if x.sum() > 0 else w
        s = x.sum().item()
        if s > 100:
            return x
        y.mul_(0.5)
        return z, y

    def viewed(x, w):
        z = x if x.sum() > 0 else w
        v = z[1:]
        if x[0].item() > 100:
            return x
        v += 1
        return z * 1

    def returned(x, w):
        y = x + 1
        z = y if x.sum() > 0 else w
        return y, z

    def chained(x, w):
        a = x + 1
        b = a if x.sum() > 0 else w
        c = b if x[0] > 0.5 else x
        c.mul_(3)
        return a * 1, b * 1, c * 1

    def program(way):
        w = tj.tensor([5.0, 5.0, 5.0])
        f = jit(way)
        return [*shown(lambda x: f(x, w), inputs=(TAKEN, OTHER, (1.0, -2.0, -3.0))), w]

    return [program(way) for way in (made, viewed, returned, chained)]


def gradients_of_tensors_that_may_be_one(jit):
    def result(x, w):
        a, b = x * 2, w * 2
        y = a if x.sum() > 0 else b
        y += 1
        return y, a, b

    def source(x, w):
        a, b = x * 2, w * 2
        y = a if x.sum() > 0 else b
        a *= 3
        return y, b

    def looped(x, w):
        a = x * 1
        y = a if x.sum() > 0 else a * 2
        for _ in range(MANY):
            y.mul_(0.9)
        return y, a + w

    def program(way):
        f, out = jit(way), []
        for values in (TAKEN, OTHER):
            x, w = leaf(*values), leaf(-1.0, 0.5, 1.0)
            y = tried(f, x, w)
            if not isinstance(y, Exception):
                sum((k + 1.5) * t.sum() for k, t in enumerate(y)).backward()
            out += [y, x, w]
        return out

    return [program(way) for way in (result, source, looped)]


# -- gradients -------------------------------------------------------------------------------------


def results_that_the_loss_does_not_use(jit):
    def crossed(x, w, v):
        if x.sum() > 0:
            a, b = w * 2, v * 3
        else:
            a, b = v * 2, w * 3
        return a, b

    def sides(x, w, v):
        if x.sum() > 0:
            a, b = w * x, v * x
        else:
            a, b = w * 2 * x, v * 3 * x
        return a, b

    def loop(x, w, v):
        a, b = w * 1, v * 1
        for _ in range(MANY):
            a = a * 0.9
            b = b * 1.1
        return a, b

    def met(x, w, v):
        a, b = x * 1, v * 1
        for _ in range(MANY):
            b = b + a * 0.1
            a = a + w * 0.1
        return a, b

    def opened(x, w, v):
        a, b = w, v
        while a.sum() < 30:
            a = a + 1
            b = b * 2
        return a, b

    def stacked(x, w, v):
        one, other = [], []
        for i in range(MANY):
            one.append(w * i)
            other.append(v * x)
        return tj.stack(one), tj.stack(other)

    def straight(x, w, v):
        return w * 2, v * 3

    def program(way):
        f, out = jit(way), []
        for used in (0, 1):
            given = leaf(0.1, 0.2, 0.3), leaf(0.4, 0.5, 0.6), leaf(0.7, 0.8, 0.9)
            f(*given)[used].sum().backward()
            out += given
        return out

    return [program(way) for way in (crossed, sides, loop, met, opened, stacked, straight)]


def results_that_a_loss_within_does_not_use(jit):
    def sides(x, w, v):
        return (w * x, v * x) if x.sum() > 0 else (w + x, v - x)

    def loop(x, w, v):
        a, b = x, x
        for _ in range(MANY):
            a = a * 0.5 + w
            b = b * 0.5 + v
        return a, b

    def opened(x, w, v):
        a, b = x + w, x * v
        while a.sum() < 50:
            a = a * 1.5 + w.abs()
            b = b * 0.5 + v
        return a, b

    def program(way, used):
        @jit
        def f(x, w, v):
            way(x, w, v)[used].sum().backward()

        out = []
        for values in (TAKEN, OTHER):
            w, v = leaf(1.0, 2.0, 3.0), leaf(4.0, 5.0, 6.0)
            f(tj.tensor(values), w, v)
            out += [w, v]
        return out

    return [program(way, used) for way in (sides, loop, opened) for used in (0, 1)]


def loops_of_no_iteration_and_gradients(jit):
    def body_only(x, w, v):
        y = x
        while y.sum() < 10:
            y = y + w
        return y

    def both(x, w, v):
        y = x * v
        while y.sum() < 10:
            y = y + w
        return y

    def unused(x, w, v):
        h, g = w * 1, x * 0
        for _ in range(MANY):
            h = h * w
            g = g + v
        h.sum().backward()
        return g.detach()

    def overwritten(x, w, v):
        y = v
        for _ in range(MANY):
            y = (w * w).clamp(-8.0, 8.0)
        return y + 1

    def program(way):
        f, out = jit(way), []
        for values in (TAKEN, (11.0, 2.0, 3.0)):
            w, v = leaf(1.0, 2.0, 3.0), leaf(4.0, 5.0, 6.0)
            y = f(tj.tensor(values), w, v)
            if y.requires_grad:
                y.sum().backward()
            out += [y, w, v]
        return out

    return [program(way) for way in (body_only, both, unused, overwritten)]


def side_that_reaches_one_leaf_only(jit):
    w, v = leaf(1.0, 2.0, 3.0), leaf(4.0, 5.0, 6.0)

    @jit
    def f(x):
        return x * w if x.sum() > 0 else x * v

    out = []
    for values in (TAKEN, OTHER):
        w.grad = v.grad = None
        f(tj.tensor(values)).sum().backward()
        out += [w.grad, v.grad]
    return out


def sides_that_reach_one_leaf_by_different_ways(jit):
    w = leaf(1.0, 2.0, 3.0)

    @jit
    def f(x):
        one, other = w * 2, w * 3
        return x * one if x.sum() > 0 else x - other

    out = []
    for values in (TAKEN, OTHER):
        w.grad = None
        f(tj.tensor(values)).sum().backward()
        out.append(w.grad)
    return out


def hooks_of_leaves_behind_regions(jit):
    log, w = [], leaf(1.0, 2.0, 3.0)
    w.register_hook(lambda grad: log.append(grad.sum().item()))

    @jit
    def f(x):
        y = x * w if x.sum() > 0 else x + w
        for _ in range(MANY):
            y = y * 0.5 + w
        return y

    for values in (TAKEN, OTHER, TAKEN):
        f(tj.tensor(values)).sum().backward()
    return [log, w]


PROGRAMS = programs_in(globals())
