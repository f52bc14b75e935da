"""Programs that look at a part of a tensor at a position that another tensor holds: a view, which
is written, whose whole is written, which is returned."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_list import programs_in


def at_each(f, rows=4):
    """Results, and arguments afterwards, for all positions, from both ends."""
    out = []
    for k in (0, 2, 1, -1, 3):
        x, t = tj.arange(12.0).view(rows, -1) - k, tj.tensor(k)
        found = f(x, t)
        out += [*(found if isinstance(found, tuple) else (found,)), x, t]
    return out


def part_is_written(jit):
    @jit
    def f(x, t):
        x[t].mul_(3)
        x[:, t - 1] += 0.5
        return x * 2

    return at_each(f)


def whole_is_written_after_the_part_was_taken(jit):
    @jit
    def f(x, t):
        a = x[t]
        x.mul_(3)
        b = a + 1
        x[t] = 7
        return a * 2, b

    return at_each(f)


def position_is_written_after_the_part_was_taken(jit):
    @jit
    def f(x, t):
        a = x[t]
        t.zero_()
        a.add_(10)
        x.neg_()
        return a * 1

    return at_each(f)


def part_of_an_argument_is_returned(jit):
    f = jit(lambda x, t: x[t, 1:])
    out = []
    for k in (0, 2, -1, 1):
        x, t = tj.arange(12.0).view(4, 3), tj.tensor(k)
        a = f(x, t)
        t.fill_(3)
        x.add_(1)
        a.mul_(-2)
        out += [a, x, a._is_view(), a._base is x, a.storage_offset()]
    return out


def part_of_a_result_is_returned(jit):
    w = tj.arange(12.0).view(4, 3).requires_grad_()

    @jit
    def f(x, t):
        y = w * x
        return y, y[t], y.sum(1)[t]

    out = []
    for k in (0, 2, -1, 1):
        y, a, b = f(tj.full((3,), k + 1.5), tj.tensor(k))
        a.mul_(3)
        (y * y).sum().add(b).backward()
        out += [y.detach(), a.detach(), b.detach(), w.grad, a._base is y]
        w.grad = None
    return out


def gradients_through_written_parts(jit):
    w = tj.arange(12.0).view(4, 3).requires_grad_()

    @jit
    def step(t):
        y = w * 0.5
        a = y[t]
        a.mul_(a.detach() + 1)
        y[:, t - 1].exp_()
        g, = tj.autograd.grad((y * a).sum(), w, create_graph=True)
        (g * g).sum().backward()
        return y.detach()

    out = []
    for k in (0, 2, 1, 2):
        out += [step(tj.tensor(k)), w.grad]
        w.grad = None
    return out


def parts_in_a_loop(jit):
    @jit
    def f(x, t):
        total = x[0] * 0
        for i in tj.arange(20) % 4:
            total = total + x[i] * x[t]
            x[i] += 0.125
        for i in tj.arange(12) % 4:
            x[i].add_(total)
        return total

    return at_each(f)


def part_is_chosen_by_a_value(jit):
    @jit
    def f(x, t):
        if x.sum() > 50:
            a = x[t]
        else:
            a = x[0] + 1
        a.add_(1)
        return a * 2, x.argmax(), x.view(-1)[x.argmax()]

    return at_each(f)


def part_lives_on_after_a_break(jit):
    @jit
    def f(x, t):
        a, b = x[t], x[t].detach()
        n = int(a.sum())
        a.add_(n)
        c = b[1]
        x.mul_(2)
        return a * 1, c

    return at_each(f)


def detached_part_is_returned(jit):
    f = jit(lambda x, t: x[t].detach())
    out = []
    for k in (0, 2, 1):
        x = tj.arange(12.0).view(4, 3)
        a = f(x, tj.tensor(k))
        a.zero_()
        out += [a, x]
    return out


def products_of_parts(jit):
    @jit
    def f(x, t):
        y = (x * 0.3).abs()
        return y[:, t - 1] @ y[:, t - 1], y.t()[t - 1] @ y, y[t].sum()

    return at_each(f)


def positions_out_of_range(jit):
    f = jit(lambda x, t: x[:, t] * 2)
    out = []
    for k in (0, 2, 3, -3, -4, 1):
        try:
            out.append(f(tj.arange(12.0).view(4, 3), tj.tensor(k)))
        except IndexError as error:
            out.append(type(error).__name__)
    return out


def among_other_keys(jit):
    @jit
    def f(x, t):
        i = tj.tensor([0, 2])
        y = x.view(2, 2, 3)
        t = t % 3
        return x[i, t], x[..., t].add_(1), x[:, None, t], y[i % 2, :, t], y[t % 2, 1]

    return at_each(f)


def parts_with_a_second_backward(jit):
    @jit
    def f(w, t):
        part = w[t]
        scaled = w * 2
        loss = part.sum() + scaled[t].sum()
        loss.backward()
        return part, scaled, loss, scaled[t], (scaled.exp() @ part).sin()

    w, out = tj.ones(4, 3).requires_grad_(), []
    for k in (0, 2, 3):
        for x in f(w, tj.tensor(k)):
            try:
                x.sum().backward()
                out.append(w.grad.clone())
            except RuntimeError as error:
                out.append(str(error))
    return out


def parts_in_inference_mode(jit):
    @jit
    def f(x, t):
        return x.sum(), x[t], x.t()[:, t][0]

    x, out = tj.arange(12.0).view(4, 3), []
    for k in (0, 2, 3):
        with tj.inference_mode():
            out += f(x, tj.tensor(k))
    return out


PROGRAMS = programs_in(globals())
