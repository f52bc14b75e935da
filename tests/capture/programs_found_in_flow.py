"""Programs with control flow in which random testing found a captured call to be wrong."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import data, tried
from tests.capture.program_list import programs_in


def written_tensor_overlaps_what_a_branch_chooses(jit):
    @jit
    def f(x):
        out = x * 1
        for a, b in zip(x, x):
            x.relu_()
            out = b if x.amax() != 0 else a
        return out

    out = []
    for sign in (1.0, -1.0, 1.0):
        x = tj.arange(6.0).view(3, 2) * sign
        out += [f(x), x]
    return out


def one_result_of_which_a_backward_inside_frees_the_history(jit):
    @jit
    def f(x):
        y = x * x
        z = x[:]
        (y.sum() + (z * z).sum()).backward()
        return y, z, x + 1

    out = []
    for k in (1.0, 2.0, 3.0):
        x = tj.full((2,), k, requires_grad=True)
        y, z, more = f(x)
        for t in (z, z, more, y):
            out.append(tried(lambda t: t.sum().backward(), t))
        out.append(x.grad)
    return out


def continue_in_the_else_of_an_inner_loop(jit):
    def counted(x, y):
        for _ in range(3):
            for _ in range(2):
                pass
            else:
                if x.sum() < 0.5:
                    continue
                x = x - y
            x = x * 2
        return x

    def decided(x, y):
        left = tj.tensor(3)
        while left > 0:
            left = left - 1
            for row in y:
                if row > 3:
                    break
            else:
                if x.sum() < 1:
                    x = x + 5
                    continue
                elif x.sum() > 20:
                    break
            x = x - y.sum()
        return x

    out = []
    for body in (counted, decided):
        f = jit(body)
        out += [f(tj.ones(3) * k, tj.arange(n) - 1.0) for k, n in ((2, 3), (0, 3), (9, 3), (3, 3))]
        out += [f(tj.ones(6), tj.arange(6.0))]
    return out


def continue_out_of_a_statement_that_is_python(jit):
    """The iteration does not go on behind it."""
    def guarded(x):
        for _ in range(3):
            with tj.no_grad():
                if x.sum() < 0.5:
                    continue
                x = x * 2
            x = x - 1
        return x

    def cleaned(x):
        left = tj.tensor(3)
        while left > 0:
            left = left - 1
            try:
                if x.sum() > 4:
                    if x.sum() > 20:
                        break
                    continue
                x = x + 3
            finally:
                x = x + 0.5
            x = x - 1
        return x

    def within(x):
        for t in range(18):
            with tj.no_grad():
                if t % 2:
                    with tj.no_grad():
                        if x.sum() < 1:
                            x = x + 2
                            continue
                else:
                    for row in x:
                        if row > 2:
                            continue
                        x = x + row
                    else:
                        if x.sum() < 3:
                            continue
            x = x - 1
        return x

    def matched(x):
        for t in range(3):
            match t:
                case 1:
                    if x.sum() < 0.5:
                        continue
                case _:
                    x = x + 1
            x = x * 0.5
        return x

    def ending(x):
        for _ in range(20):
            x = x - 1
            with tj.no_grad():
                if x.sum() < 0.5:
                    continue
                x = x * 0.5
        return x

    out = []
    for body in (guarded, cleaned, within, matched, ending):
        f = jit(body)
        out += [f(tj.ones(2) * k) for k in (5, -1, 0.3, 2, -6, 0.7)]
    return out


def two_variables_that_are_one_tensor_after_an_iteration(jit):
    def last(a, b):
        v, r, k = a * 2, b, 0
        while k < 4 and (v >= 0).any():
            k += 1
            v = v - 1
            r = v
        return v, r

    def written(a, b):
        v, r, k = a * 2, b * 1, 0
        s = r
        while k < 4 and (v >= 0).any():
            k += 1
            v = v - 1
            r = s = v
        r.add_(1)
        return v, r, s

    def chosen(a, b):
        v, r, q, k = a * 2, b, b * 3, 0
        while k < 4 and (v >= 0).any():
            k += 1
            if q.sum() > 4:
                v = v - 1
            else:
                v, q = q, q + 1
            r = v
        r = r.view(-1)
        r.mul_(2)
        return v, r, q

    out = []
    for body in (last, written, chosen):
        f = jit(body)
        for first, second in ((-1.0, 3.0), (0.5, 3.0), (5.0, 1.0), (-1.0, 5.0)):
            a, b = tj.tensor([first, first - 1]), tj.tensor([second, second])
            results = f(a, b)
            out += [*results, a, b, [x is y for x in results for y in (*results, a, b)]]
    return out


def more_dimensions_than_there_can_be(jit):
    class State:
        pass

    @jit
    def f(x, o):
        k = 0
        while k < 17 and x.reshape(-1)[0] < 2:
            k += 1
            for _ in range(4):
                o.t = o.t.unsqueeze(0)

    out = []
    for shape in ((3, 2), (37, 0)):
        o = State()
        o.t = tj.ones(shape)
        out.append(tried(f, tj.ones(1, 1, dtype=tj.int32), o))
        out += [list(o.t.shape), o.t]
    return out


def variable_that_is_the_last_element_of_a_list(jit):
    @jit
    def f(rows):
        out, more = [], []
        h = tj.zeros(3)
        for row in rows:
            h = tj.tanh(h + row)
            out.append(h)
            more.append(h * 2)
        last = h
        for row in rows:
            h = h * row
            out.append(h)
        last.add_(1)
        return out, [t is last for t in out], out[-1] is h, more, tj.stack(out).sum()

    return [tried(f, data(n)) for n in (20, 3, 1, 0, 17)]


def refused_write_to_what_a_branch_may_have_left_alone(jit):
    """The error is that of the caller's own tensor, of which only a value says that it is it."""
    def divided(x):
        if x.sum() > 100:
            x = x.sin()
        x.div_(3)

    def filled(x):
        if x.sum() > 100:
            x = x.sin()
        x.fill_(3)

    def row_of_it(x):
        if x.sum() > 100:
            x = x.sin()
        x[0].mul_(2)

    leaf = tj.ones(3, 2, requires_grad=True)
    out = [leaf]
    for body in (divided, filled, row_of_it):
        f = jit(body)
        for x in (leaf[:, :1].expand(3, 2), leaf.t(), tj.nn.Parameter(tj.ones(3, 2).t()),
                  tj.ones(3, 1).expand(3, 2), tj.nn.Parameter(tj.ones(3, 1).expand(3, 2)),
                  leaf.mul(2).t()):
            out += [tried(f, x), x]
    return out


def failure_before_an_exception_of_a_branch(jit):
    """What fails first is told, also where the exception would come whatever the values are."""
    def chosen(x, table, places):
        if x > 0:
            y = x
        else:
            y = table[places]
            raise ValueError(len(y))
        return y

    def reshaped(x, table, places):
        if x > 0:
            return x
        return tj.embedding(table, places).view(7)

    out = []
    for body in (chosen, reshaped):
        f = jit(body)
        for sign, places in ((-1.0, (0, 5)), (-1.0, (0, 1)), (1.0, (0, 5)), (-1.0, (0, 5))):
            out.append(tried(f, tj.tensor(sign), tj.ones(3, 2), tj.tensor(places)))
    return out


def results_that_history_within_keeps_and_that_may_have_been_written(jit):
    def branches(x, t, c):
        x = t * x
        x.exp_()
        for k in range(2):
            if c[k] < 0:
                x = t * x
                x.tanh_()
        return x.sum()

    def open_loop(x, t, c):
        x = t * x
        x.exp_()
        while c.sum() < 3:
            c = c + 1
            x = t * x
            x.tanh_()
        return x.sum()

    def left_loop(x, t, c):
        x = t * x
        x.exp_()
        for _ in range(20):
            if x.sum() < c[0]:
                break
            x = x * t
            x.sigmoid_()
        return x.sum()

    out = []
    for body in (branches, open_loop, left_loop):
        f = jit(body)
        for c in ((-1, -1), (-1, 1), (1, -1), (2, 2)):
            t = tj.arange(3.0).sin().requires_grad_()
            y = f(tj.arange(3.0).cos(), t, tj.tensor(c))
            out += [y, tried(lambda y: y.backward(), y), t.grad]
    return out


def gradient_of_a_mask_of_what_has_no_dimensions(jit):
    @jit
    def f(x, t):
        x = x - t
        while x.reshape(-1)[0] > 1:
            x = x * 0.5
        x[x > 0] = 2
        ((t * t).sum() + x.mean()).backward()

    out = []
    for value in (0.5, 7.0, 1.5):
        t = tj.tensor(1.0, requires_grad=True)
        out += [tried(f, tj.tensor(value), t), t.grad]
    return out


def rows_of_one_tensor_are_no_one_tensor(jit):
    def zipped(x, y):
        total, same = x.sum() * 0, 0
        for a, b in zip(x, y):
            if a is b:
                same += 1
            total = total + (a * b).sum()
        return total, same

    def asked_twice(x, y):
        total, same = x.sum() * 0, 0
        for i in range(x.shape[0]):
            same += (x[i] is x[i]) + (x[i] is y[i]) * 10
            total = total + (x[i] * x[i] * y[i]).sum()
        return total, same

    out = []
    for body in (zipped, asked_twice):
        f = jit(body)
        for rows in (20, 3, 1):
            x = data(rows).requires_grad_()
            y = f(x, x)
            y[0].backward()
            out += [y, x.grad, f(x, x * 2)]
    return out


def rows_over_the_same_memory_are_written(jit):
    @jit
    def f(x, y):
        for i, row in enumerate(y, 1):
            x[i] = row
        return x + 1

    out = []
    for rows in (3, 16, 1):
        one, pairs = tj.zeros(1, 2), tj.zeros(rows + 2, 2)
        overlapping = pairs.view(-1).as_strided((rows + 2, 2), (1, 1))
        for x in (one.expand(rows + 2, 2), overlapping):
            out += [f(x, data(rows, 2)), one, pairs, x._version]
    return out


def one_of_several_views_written(jit):
    def by_value(t, x, c):
        r, s = t.unbind(0)
        k = c.sum()
        while k < 4:
            k = k + 1
            r *= x
        return s

    def row_by_row(t, x, c):
        for r in t:
            k = c.sum()
            while k < 4:
                k = k + 1
                r *= x

    def counted(t, x, c):
        r = t.split(1)[0]
        for _ in range(12 + len(c)):
            r *= x
        return r

    def in_a_branch(t, x, c):
        r, s = t.unbind(0)
        if c.sum() < 4:
            r *= x
        return s

    def made_untracked(t, x, c):
        with tj.no_grad():
            r = t[0]
        k = c.sum()
        while k < 4:
            k = k + 1
            r *= x
        return r

    out = []
    for way in (by_value, row_by_row, counted, in_a_branch, made_untracked):
        f = jit(way)
        for tracked, value in ((True, 1.0), (False, 1.0), (True, 5.0), (False, 5.0), (True, 2.0)):
            base = tj.ones(2, 3, requires_grad=tracked and way is not made_untracked)
            t, x = base * 2, tj.tensor(3.0, requires_grad=not tracked or value == 2)
            out += [tried(f, t, x, tj.tensor([value])), t]
            if t.requires_grad:
                out += [tried(t.sum().backward), base.grad, x.grad]
    return out


def leaves_beside_a_backward_that_raises(jit):
    @jit
    def f(x, y, c):
        if c.sum() > 0:
            a, b = x * 2, y * 3
        else:
            a, b = x + 1, y * y
        a = a.tanh()
        a[0] += 1
        return y, a, b

    out = []
    for value in (1.0, -1.0, 2.0):
        x, y = tj.tensor([1.0, 2.0], requires_grad=True), tj.tensor([3.0, 4.0], requires_grad=True)
        same, a, b = f(x, y, tj.tensor([value]))
        out += [tried(((same * same).sum() + a.sum()).backward), x.grad, y.grad]
        out += [tried(b.sum().backward), x.grad, y.grad]
    return out


def written_after_a_break_and_compared_again(jit):
    @jit
    def f(x, limit):
        x = x + x
        for _ in range(3):
            x.neg_()
            rounds = 0
            while True:
                rounds += 1
                if rounds > 2 or x[0] <= limit:
                    break
                x = (x * x).clamp(-4, 4)
        return x * 2

    out = []
    for start in (0.1, 0.3, 0.9, -1.0):
        x = tj.tensor([start, 2.0, 3.0], requires_grad=True)
        for limit in (0.5, 3.0):
            y = f(x, limit)
            out += [y, x, tried(lambda y=y: y.sum().backward()), x.grad]
    return out


def written_in_a_loop_after_a_branch_chose_a_leaf(jit):
    @jit
    def f(x, c):
        if c.sum() > 0:
            x = x * 2
        left = tj.zeros(())
        while left < 3:
            left = left + 1
            for _ in x[2:]:
                x = x + x.sum()
            x.neg_()
        return x

    out = []
    for shape in ((2, 1), (3, 1)):
        for value in (-1.0, 1.0, 2.0, -1.0):
            x = tj.ones(shape, requires_grad=True)
            y = tried(f, x, tj.tensor([value]))
            out += [y, x, tried(lambda y=y: y.sum().backward()), x.grad]
    return out


def written_before_a_continue_and_chosen_again(jit):
    @jit
    def f(x, t):
        x = x + t.sum()
        k = 0
        while k < 4 and t[0] != 0.5:
            k += 1
            x.zero_()
            if t.amax() >= 0:
                continue
            if x.sum() != k:
                x = x + t.sum()
        return x

    out = []
    for start in (1.0, -1.0, 0.5, -1.0):
        t = (tj.arange(3.0) * 0.1 + start).requires_grad_()
        x = tj.ones(1, 3)
        y = f(x, t)
        out += [y, x, tried(lambda y=y: y.sum().backward()), t.grad]
    return out


PROGRAMS = programs_in(globals())
