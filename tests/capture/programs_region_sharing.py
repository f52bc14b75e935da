"""Programs whose variables may be one tensor or another when a branch or a loop is over.

What they are decides which memory a later write reaches, which tensor is returned, and what a
gradient goes back to.
"""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import MANY, OTHER, TAKEN, leaf, tried
from tests.capture.program_list import programs_in

WEIGHTS = ((1.0, 1.0, 0.5), (-1.0, -1.0, 0.2))


def over(jit, ways, gradients=False):
    """What each way gives and leaves in its arguments, for both outcomes of two tests."""
    out = []
    for way in ways:
        f = jit(way)
        for values in (TAKEN, OTHER, TAKEN, OTHER):
            for weight in WEIGHTS:
                x = leaf(*values) if gradients else tj.tensor(values)
                w = leaf(*weight) if gradients else tj.tensor(weight)
                y = tried(f, x, w)
                if gradients and isinstance(y, tuple):
                    sum((k + 1.5) * t.sum() for k, t in enumerate(y)).backward()
                out += [y, x, w]
    return out


# -- branches --------------------------------------------------------------------------------------


def choice_in_a_side(jit):
    def argument(x, w):
        if x.sum() > 0:
            y = x if w.sum() > 0 else x * 2
        else:
            y = w * 3
        y += 1
        return y

    def returned(x, w):
        if x.sum() > 0:
            y = x if w.sum() > 0 else w
        else:
            y = w * 3
        return y

    def several(x, w):
        a, b = x * 2, w * 3
        if x.sum() > 0:
            y, z = (a if w.sum() > 0 else b), a
        else:
            y, z = w * 3, w * 4
        y += 1
        return y, z, a, b

    def of_one_another(x, w):
        if x.sum() > 0:
            a = x * 2
            b = a if w.sum() > 0 else w
        else:
            a, b = w * 2, x
        b += 1
        return a, b

    def viewed(x, w):
        if x.sum() > 0:
            y = (x if w.sum() > 0 else x * 2)[1:]
        else:
            y = w[1:] * 3
        y += 1
        return y

    return over(jit, [argument, returned, several, of_one_another, viewed])


def written_in_a_side_through_what_may_be_it(jit):
    def inside(x, w):
        y, z = x if x.sum() > 0 else w, x * 0
        if w.sum() > 0:
            y += 1
            z = x * 2 + w
        return z

    def after(x, w):
        y = x if x.sum() > 0 else w
        if w.sum() > 0:
            y += 1
        return x * 1, w * 1

    return over(jit, [inside, after])


def choices_of_choices(jit):
    def chained(x, w):
        for _ in range(5):
            if not x.sum() > 1:
                w = x
            x = x + 0.0
        w += 1
        return w

    def apart(x, w):
        a = x * 2
        b = a if x.sum() > 0 else w
        c = a if w.sum() > 0 else x
        b += 1
        c *= 2
        return a, b, c

    def returned(x, w):
        a = x * 2
        b = a if x.sum() > 0 else w
        c = b if w.sum() > 0 else a
        return c, b, a

    def after_a_break(x, w):
        a = x
        b = a if w.sum() > 0 else x * 2
        if x[0].item() > 100:
            return x
        c = b if x.sum() > 0 else a
        return c, b

    return over(jit, [chained, apart, returned, after_a_break])


def memory_shared_without_being_one_tensor(jit):
    def argument(x, w):
        return x.detach() if x.sum() > 0 else w * 2

    def result(x, w):
        z = x * 3
        y = z.detach() if x.sum() > 0 else w * 2
        return y, z

    def with_its_view(x, w):
        z = x * 3
        y = z if x.sum() > 0 else w * 2
        return y[1:], z

    def of_a_choice(x, w):
        if w.sum() > 10:
            x = x + 1
        if x.sum() > 0:
            x = x.detach()
        return x

    def flat(x, w):
        v = of_a_choice(x, w).flatten()
        v.add_(1)
        return v

    def in_a_loop(x, w):
        for _ in range(MANY):
            if w.sum() > 10:
                x = x + 1
            if x.sum() > 0:
                x = x.detach()
        return x

    def program(way):
        f, out = jit(way), []
        for values in (TAKEN, OTHER, TAKEN, OTHER):
            x, w = tj.tensor(values), tj.tensor(WEIGHTS[0])
            y = f(x, w)
            (y[0] if isinstance(y, tuple) else y).add_(1)
            out += [y, x, w]
        return out

    ways = (argument, result, with_its_view, of_a_choice, flat, in_a_loop)
    return [program(way) for way in ways]


def detached_before_what_may_do_nothing(jit):
    def tested_first(x, w):
        y, n = x.detach(), 0
        while n < 3 and y.sum() > 0:
            y, n = y - 1, n + 1
        return {"y": [y, y]}

    def both(x, w):
        a, b = x.detach(), x.detach()
        while a.sum() > 0:
            a, b = a - 1, b * 2
        return a, b

    def branches(x, w):
        a, b = x.detach(), w.detach()
        if x.sum() > 0:
            a = b
        if w.sum() > 0:
            a = a * 3
        return a, b[1:]

    def itself_or_detached(x, w):
        y = x.detach()
        if x.sum() > 0:
            y = x
        if w.sum() > 0:
            y = y * 2
        return y

    def counted(x, w):
        y = x.detach()
        for _ in range(MANY):
            if y.sum() > 0:
                y = y - 1
        return y.view(3, 1)

    def left_early(x, w):
        y = x.detach()
        for _ in range(MANY):
            if y.sum() < -4:
                return y
            y = y - 1
        return w * 2

    def stored(x, w):
        y = x.detach()
        if w.sum() > 0:
            y = y + 1
        LEFT[:] = [y]
        x += 1

    ways = [tested_first, both, branches, itself_or_detached, counted, left_early, stored]
    shown = over(jit, ways), over(jit, [tested_first, counted], gradients=True), list(LEFT)
    LEFT.clear()
    return shown


LEFT: list = []


def leaf_of_the_call_that_may_be_returned(jit):
    def detached(x, w):
        y = x.detach().requires_grad_()
        if x.sum() > 0:
            y = y * 2
        return [y]

    def made(x, w):
        y = (x * 2).detach().requires_grad_()
        while y.sum() > 0:
            y = y - 1
        return [y]

    def best(x, w):
        y = best = x.detach().requires_grad_()
        for _ in range(MANY):
            y = y * 0.9
            best = y if y.sum() < best.sum() else best
        return [best]

    return over(jit, [detached, made, best])


def copied_from_what_may_be_another(jit):
    def f(x, w):
        x, w = x * 1, w + 0
        x.mul_(0.5)
        w.copy_(x if x.sum() > -6 else w)
        w = w if not w.sum() > 1 else x
        x = (x * w).clamp(-8.0, 8.0)
        return (x.clone(),)

    return over(jit, [f], gradients=True)


def identity_asked_for(jit):
    def directly(x, w):
        y = x if x.sum() > 0 else w
        return y is x, y is w, y is not x, x * 2

    def in_a_loop(x, w):
        y, z = x, w
        for _ in range(MANY):
            if y is x:
                z = z + 1
            if y.sum() < 3:
                y = y + 1
        return y is x, z

    def after_a_while(x, w):
        y = x
        while y.sum() < 3:
            y = y + 1
        return y is x, y

    def in_a_side(x, w):
        y = x if x.sum() > 0 else w
        if w.sum() > 0:
            return x * 1 if y is x else w * 3
        return x - 1

    def by_a_comprehension(x, w):
        y = x if x.sum() > 0 else w
        return [t for t in (x, w) if t is not y], y is x and y is not w

    return over(jit, [directly, in_a_loop, after_a_while, in_a_side, by_a_comprehension])


# -- loops -----------------------------------------------------------------------------------------


def best(x, w):
    best, y = x, x * 1
    for _ in range(MANY):
        y = y * 0.9 + w * 0.1
        best = y if y.sum() > best.sum() else best
    with tj.no_grad():
        best += 1
    return best, y


def lagging(x, w):
    a = b = c = x * 1
    for _ in range(MANY):
        if a.sum() > 0:
            c = b
        if w.sum() > 0:
            b = a
        a = a - 0.3 + w * 0.1
    with tj.no_grad():
        b += 1
        c *= 2
    return a, b, c


def lagging_in_a_while(x, w):
    a = b = c = x
    n = 0
    while a.sum() > -3 and n < 12:
        if a.sum() > 0:
            c = b
        if w.sum() > 0:
            b = a
        a = a - 0.3 + w * 0.1
        n += 1
    with tj.no_grad():
        c *= 2
    return a, b, c


def outer_tensors(x, w):
    z = y = x * 2
    for _ in range(MANY):
        if y.sum() > 3:
            y = w
        elif w.sum() > 1:
            y = x
        else:
            y = y + 1
        if y.sum() < 0:
            z = y
    with tj.no_grad():
        y *= 2
    return y, z, x * 1, w * 1


def swapped(x, w):
    a, b = x, w
    for k in range(MANY - 1):
        if a.sum() < b.sum() + k - 5:
            a, b = b, a
    with tj.no_grad():
        a += 1
    return a, b


def left_early(x, w):
    z = y = x * 2
    for _ in range(MANY):
        y = w if y.sum() > 3 else y + 1
        if y.sum() > w.sum():
            break
        if y.sum() < 2:
            z = y
    with tj.no_grad():
        y *= 2
    return y, z


def unchanged_in_a_while(x, w):
    y, n = x, 0
    while n < 3 and y.sum() < 30:
        if y.sum() > 0:
            y = y * 2
        n = n + 1
    with tj.no_grad():
        y += 1
    return y, w


def nested(x, w):
    z = y = x * 1
    for _ in range(MANY):
        if y.sum() > 3:
            z = y
        for _ in range(MANY):
            if z.sum() < 5:
                z = w
            elif y.sum() > 4:
                z = y
        y = y + 0.1
    with tj.no_grad():
        z += 5
    return y, z


def views_of_arguments(x, w):
    y, z = x[1:], w[1:]
    for _ in range(MANY):
        if y.sum() < 3:
            y = y + 1
    while z.sum() < 3:
        z = z + 1 if z[0] < 0 else z + 0.5
    with tj.no_grad():
        y += 1
        z += 1
    return y, z


def detached(x, w):
    z = y = x * 1
    for _ in range(MANY):
        if y.sum() < 3:
            z = y.detach()
        y = y + w * 0.1
    with tj.no_grad():
        z += 1
    return y, z


def written_within(x, w):
    y, z, v = x * 1, x * 2, w * 2
    for _ in range(MANY):
        if y.sum() > 3:
            z = y
        v = z if v.sum() > 2 else v
        with tj.no_grad():
            y += 0.1
    return y, z, v


def read_through_another_name(x, w):
    y, s = x if x.sum() > 0 else w, x * 0
    for _ in range(MANY):
        with tj.no_grad():
            y += 1
        s = s + x
    return s, w * 1


WAYS = [best, lagging, lagging_in_a_while, outer_tensors, swapped, left_early, unchanged_in_a_while,
        nested, views_of_arguments, detached, written_within,
        read_through_another_name]  # fmt: skip


def variables_that_may_be_one_after_a_loop(jit):
    return over(jit, WAYS)


def gradients_of_variables_that_may_be_one_after_a_loop(jit):
    ways = [lagging, lagging_in_a_while, swapped, written_within, read_through_another_name]
    return over(jit, ways, gradients=True)


def leaves_reached_by_a_variable_that_was_chosen(jit):
    def listed(x, w):
        both = [x * 1, w * 1]
        for _ in range(MANY):
            both = [both[0] if both[1].sum() > 2 else both[1], both[1] + 0.1]
        return (both[0],)

    def kept(x, w):
        best, y = x * 1, x * 2
        for _ in range(MANY):
            best = y if y.sum() > 3 else best
            y = y * 0.9 + w * 0.01
        return (best,)

    def scanned(x, w):
        y = x * 1
        for row in w:
            y = y if y.sum() > 20 else y + row
        return (y,)

    return over(jit, [listed, kept, scanned], gradients=True)


def elements_that_may_be_another_tensor(jit):
    def f(x, w):
        kept, y = [], x
        for _ in range(MANY):
            kept.append(y if y.sum() > 0 else w)
            y = y - 0.1
        kept[3] += 1
        return tj.stack(kept), y

    return over(jit, [f])


def elements_of_a_list_a_loop_filled_are_tensors_of_their_own(jit):
    def f(x, w):
        out, h = [], x[0]
        for row in x:
            h = h * w + row
            out.append(h)
        return tj.stack(out), out, h

    f, seen = jit(f), []
    for rows in (10, 10, 3):
        w = tj.ones(3).mul_(0.5).requires_grad_()
        whole, parts, last = f(tj.arange(rows * 3.0).reshape(rows, 3), w)
        with tj.no_grad():
            whole[0].zero_()
            parts[1].zero_()
        parts[-1].mul_(2)
        seen += [whole, parts, last is parts[-1]]
        seen += [[p._version, p._base is None, p.storage_offset()] for p in (whole, *parts)]
        parts[0].sum().backward()
        seen.append(w.grad)
    return seen


def memory_of_what_iterations_detach_or_compute(jit):
    def rows(x, t):
        y = x
        for _ in range(16):
            y = y.detach()
            if t.sum() < 0:
                y = y * 2
        return y

    def until(x, t):
        y = x
        while t.sum() <= 3:
            y = y.view(-1)
            t = t + 1
            if t.sum() < 0:
                y = y * 2
        return y

    def counted(x, t):
        k, y = 0, x
        while k < 2 and t.sum() <= x.sum():
            k += 1
            y = y.data
            if k >= t.sum():
                y = y * k
        return y

    out = []
    for body in (rows, until, counted):
        f = jit(body)
        for start in (-7.0, -1.0, 0.5, 1.5, 5.0):
            x = tj.full((2,), 3.0)
            y = f(x, tj.tensor([start]))
            y.add_(1)
            out += [y, x, y is x]
    return out


def writes_to_data_that_a_branch_gave(jit):
    def chosen(x, t):
        y = x
        if t > 0:
            y = x.data
        y.mul_(2)
        return y

    def in_some_iterations(x, t):
        y = x
        for row in x:
            if row > t:
                y = y.data
            y.mul_(2)
        return y

    def until(x, t):
        y = x
        for row in x:
            if row < t:
                break
            y = y.data
        y[0] = 3
        return y

    def later(x, t):
        y = x
        if t > 0:
            y = x * t
            y = y.view(-1)
        y.data.relu_()
        return y

    out = []
    for body in (chosen, in_some_iterations, until, later):
        f = jit(body)
        for value in (1.0, -1.0, 2.0):
            x = tj.arange(1.0, 4.0)
            y = f(x, tj.tensor(value))
            out += [y, x, y is x, x._version > 0]
    return out


def writes_through_data_in_loops(jit):
    def all_iterations(x, t):
        for _ in range(16):
            x.data.mul_(2)
            x = x
        return x

    def while_it_lasts(x, t):
        while t > 0:
            x.data.mul_(2)
            t, x = t - 1, x
        return x

    def after_a_write(x, t):
        x += 1
        x = x.data
        for _ in range(16):
            if t > 0:
                break
            x = x.relu_()
        return x

    out = []
    for body in (all_iterations, while_it_lasts, after_a_write):
        f = jit(body)
        for value in (1.0, -1.0, 2.0):
            x = tj.arange(1.0, 4.0)
            out += [f(x, tj.tensor(value)), x, x._version > 0]
    return out


def detached_tensor_that_leaves_a_loop(jit):
    """What a variable may be is made in the body, over the memory of what it was before."""

    def chosen(y, t):
        while t.sum() <= 3:
            t = t + 1
            d = y.detach()
            if y.sum() > 3:
                y = d
        return y

    def or_changed(y, t):
        while t.sum() <= 3:
            t = t + 1
            d = y.detach()
            if y.sum() > 3:
                y = d
            elif t.sum() > 2:
                y = y * 2
        return y

    def at_a_break(y, t):
        while t.sum() <= 3:
            t = t + 1
            if y.sum() > 3:
                break
            y = y.detach()
            if t.sum() < 2:
                break
            y = y.clone()
        return y

    def in_a_branch(y, t):
        z = y
        if t.sum() <= 3:
            d = y.detach()
            if y.sum() <= 3:
                if t.sum() < 2:
                    z = d
                else:
                    z = y * 2
        return z

    out = []
    for program in (chosen, or_changed, at_a_break, in_a_branch):
        f = jit(program)
        for sign in (-1.0, 1.0):
            for start in (0.0, 1.0, 2.0, 5.0):
                y = tj.ones(4) * sign
                result = f(y, tj.full((1,), start))
                result.add_(1)
                out += [result, y, result is y]
    return out


PROGRAMS = programs_in(globals())
