"""Programs at the seams of control flow: aliases in loops, scopes, sharing, orders of effects."""

from __future__ import annotations

import contextlib
import functools

import tracejit as tj
from tests.capture.program_inputs import data, filled, tried
from tests.capture.program_list import programs_in
from tracejit import nn

SIGNS = (1.0, -1.0, 0.0, 2.0)


def loop_variable_is_a_view_that_is_written(jit):
    @jit
    def f(x):
        for row in x:
            row.mul_(2)
            if row.sum() > 3:
                row.zero_()
        return x.sum()

    out = []
    for n in (3, 1, 6):
        x = data(n)
        out += [f(x), x, x._version > 0]
    return out


def loop_over_memory_that_a_branch_outside_the_graph_may_write(jit):
    def body(x, index, go):
        x = x + x.sum()
        for k, row in enumerate(x):
            if go.sum() > 0:
                x *= k
            for other in x:
                row = tj.scatter_add(other, 0, index, row)
        return x, row

    f, out = jit(body), []
    for seed in range(3):  # PyTorch refuses rows of a tensor that was written
        x = data(3, seed=seed).requires_grad_()
        y, row = f(x, tj.tensor([0, 1, 1]), -tj.ones(2))
        (y.sum() + row.sum()).backward()
        out += [y, row, x.grad]
    return out


def carried_tensor_written_in_place_was_the_argument(jit):
    @jit
    def f(x, h):
        for t in range(x.shape[0]):
            h += x[t]
        return h

    out = []
    for n in (0, 1, 5):
        h = tj.ones(3)
        y = f(data(n), h)
        y.add_(1)
        out += [h, y is h, y]
    return out


def carried_list_is_returned_and_appended_to_later(jit):
    @jit
    def f(x):
        rows, last = [], x.sum(0)
        for t in range(x.shape[0]):
            rows.append(x[t] * last)
            last = rows[-1]
        return rows, last

    out = []
    for n in (2, 1, 5):
        rows, last = f(data(n))
        rows.append(last)
        last.add_(1)
        out += [rows, last, type(rows) is list, len(rows)]
    return out


def rows_kept_in_a_dict_by_index(jit):
    @jit
    def f(x):
        kept = {}
        for t in range(x.shape[0]):
            kept[t] = x[t] * (t + 1)
        kept["all"] = x.sum(0)
        return kept

    return [f(data(n)) for n in (2, 0, 4)]


def branch_returns_one_of_two_arguments(jit):
    @jit
    def f(a, b):
        if a.sum() > b.sum():
            return a
        return b

    out = []
    for k in SIGNS:
        a, b = tj.ones(2) * k, tj.ones(2) * 0.5
        c = f(a, b)
        c.add_(1)
        out += [a, b, c, c is a]
    return out


def swapped_names_in_a_branch(jit):
    @jit
    def f(a, b):
        if a.sum() > 0:
            a, b = b, a
        a.mul_(3)
        return a - b

    out = []
    for k in SIGNS:
        a, b = tj.ones(2) * k, tj.arange(2.0)
        out += [f(a, b), a, b]
    return out


def argument_chosen_by_a_ternary(jit):
    f = jit(lambda a, b: (a if a.sum() > 0 else b).add_(1))
    out = []
    for k in SIGNS:
        a, b = tj.ones(2) * k, tj.zeros(2)
        out += [f(a, b), a, b]
    return out


def view_chosen_by_a_ternary(jit):
    @jit
    def f(x):
        row = x[0] if x.sum() > 0 else x[1]
        row.zero_()
        return x * 1

    out = []
    for k in SIGNS:
        x = tj.ones(2, 2) * k
        out += [f(x), x]
    return out


def argument_chosen_for_an_attribute(jit):
    kept = {}

    @jit
    def f(a, b):
        kept["last"] = a if a.sum() > 0 else b

    out = []
    for k in SIGNS:
        a, b = tj.ones(2) * k, tj.zeros(2)
        f(a, b)
        kept["last"].add_(1)
        out += [a, b, kept["last"]]
    return out


def result_chosen_among_results(jit):
    @jit
    def f(x):
        a, b = x + 1, x + 2
        chosen = a if x.sum() > 0 else b
        chosen.zero_()
        return a, b, chosen

    return [f(tj.ones(2) * k) for k in SIGNS]


def names_swapped_in_a_for(jit):
    @jit
    def f(a, b, x):
        for _ in range(x.shape[0]):
            a, b = b, a
        a.add_(1)
        return b

    out = []
    for n in (1, 2, 5):
        a, b = tj.ones(2), tj.zeros(2)
        last = f(a, b, tj.ones(n))
        last.mul_(3)
        out += [a, b, last]
    return out


def names_swapped_in_a_while(jit):
    @jit
    def f(a, b, k):
        while k > 0:
            a, b = b, a
            k = k - 1
        a.add_(1)
        return b

    out = []
    for n in (1.0, 2.0, 5.0, 0.0):
        a, b = tj.ones(2), tj.zeros(2)
        last = f(a, b, tj.tensor(n))
        last.mul_(3)
        out += [a, b, last]
    return out


def one_argument_under_two_names_in_a_loop(jit):
    @jit
    def f(a, b):
        for _ in range(3):
            a.add_(1)
            if b.sum() > 4:
                b.mul_(0.5)
        return a * 1, b * 1

    out = []
    for shared in (False, True, False):
        a = tj.ones(2)
        b = a if shared else tj.ones(2)
        out += [f(a, b), a, b]
    return out


def grad_mode_decided_by_a_loop(jit):
    w = tj.ones(2, requires_grad=True)

    @jit
    def f(x):
        total = tj.zeros(())
        for t in range(x.shape[0]):
            with tj.no_grad() if t % 2 else contextlib.nullcontext():
                total = total + (x[t] * w).sum()
        return total

    out = []
    for n in (1, 2, 5):
        y = f(data(n, 2))
        if y.requires_grad:
            y.backward()
        out += [y, None if w.grad is None else w.grad.clone()]
        w.grad = None
    return out


def functools_inside(jit):
    def doubled(x):
        return x * 2 if x.sum() > 0 else x

    @jit
    def f(xs):
        total = functools.reduce(lambda a, b: a + b if a.sum() > 0 else a - b, xs)
        scaled = map(doubled, xs)
        return total, list(scaled), [*filter(lambda x: x.dim() == 1, xs)][0] * 1

    return [f([tj.ones(2) * k, -tj.ones(2), tj.arange(2.0)]) for k in SIGNS]


def sorted_by_a_tensor_key(jit):
    @jit
    def f(xs):
        ordered = sorted(xs, key=lambda x: x.sum().item())
        return ordered[0] * 1, max(xs, key=lambda x: float(x[0])) * 2

    return [f([tj.ones(2) * k, tj.arange(2.0), -tj.ones(2) * k]) for k in SIGNS]


def comprehension_with_a_condition_on_tensors(jit):
    @jit
    def f(x):
        kept = [row * 2 for row in x if row.sum() > 0]
        named = {k: row.sum() for k, row in enumerate(x)}
        return len(kept), kept, named, any(row.sum() > 2 for row in x)

    return [f(data(n)) for n in (3, 0, 6)]


def walrus_and_chained_conditions(jit):
    @jit
    def f(x):
        if (s := x.sum()) > 0 and (m := x.max()) > 1 or x.min() < -2:
            x = x * s
        m = s
        return x, m

    return [f(data(3) * k) for k in SIGNS]


def early_exit_of_nested_loops(jit):
    @jit
    def f(x, limit):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                if x[i, j] > limit:
                    return i, j, x[i] * 1
            x[i].add_(1)
        return -1, -1, x.sum(0)

    out = []
    for limit in (0.5, 1.2, 9.0):
        x = data(3)
        out += [f(x, limit), x]
    return out


def parameter_frozen_between_looped_calls(jit):
    layers = nn.ModuleList([filled(nn.Linear(3, 3)) for _ in range(3)])

    @jit
    def f(x):
        for layer in layers:
            x = layer(x) if x.sum() > 0 else layer(-x)
        return x.sum()

    out = []
    for k in range(4):
        layers.zero_grad()
        layers[k % 3].weight.requires_grad_(k % 2 == 0)
        f(data(2) * (1 - k)).backward()
        out += [None if p.grad is None else p.grad.clone() for p in layers.parameters()]
    return out


def layers_appended_and_removed(jit):
    layers = nn.ModuleList([filled(nn.Linear(3, 3))])

    @jit
    def f(x):
        for layer in layers:
            x = layer(x).tanh()
        return x

    out = [f(data(2))]
    layers.append(filled(nn.Linear(3, 3)))
    out.append(f(data(2)))
    layers.insert(0, nn.Tanh())
    out.append(f(data(2)))
    del layers[1]
    return [*out, f(data(2)), len(layers)]


def retained_gradients_of_a_loop(jit):
    w = tj.ones(3, requires_grad=True)

    @jit
    def f(x):
        h = tj.zeros(3)
        for t in range(x.shape[0]):
            h = (h * w + x[t]).sin()
        return h.sum()

    out = []
    for n in (3, 9):
        y = f(data(n))
        y.backward(retain_graph=True)
        y.backward()
        out += [w.grad.clone(), y.requires_grad]
        w.grad = None
    return out


def gradient_inside_a_loop_inside_a_call(jit):
    @jit
    def f(x, steps):
        w = tj.zeros(3, requires_grad=True)
        for _ in range(steps):
            loss = ((w - x) ** 2).sum()
            (g,) = tj.autograd.grad(loss, w)
            w = (w - 0.25 * g).detach().requires_grad_()
        return w.detach(), loss.detach()

    return [f(data(1)[0], n) for n in (1, 4, 20)]


def default_and_keyword_arguments_in_loops(jit):
    def cell(x, h=None, *, scale=1.0, **rest):
        h = x * 0 if h is None else h
        return h * scale + x + rest.get("bias", 0.0)

    @jit
    def f(x, **options):
        h = None
        for t in range(x.shape[0]):
            h = cell(x[t], h, **options)
        return h

    return [f(data(3)), f(data(3), scale=0.5), f(data(5), bias=1.0), f(data(0))]


def integers_carried_by_a_while(jit):
    @jit
    def collatz(n):
        steps = tj.tensor(0)
        while n > 1:
            n = tj.where(n % 2 == 0, n // 2, n * 3 + 1)
            steps = steps + 1
        return steps, n

    return [collatz(tj.tensor(n)) for n in (1, 6, 27, 2)]


def booleans_and_comparisons_carried(jit):
    @jit
    def f(x, limit):
        seen, first = tj.tensor(False), tj.tensor(-1)
        for t in range(x.shape[0]):
            hit = (x[t] > limit).any()
            if hit and not seen:
                first = tj.tensor(t)
            seen = seen | hit
        return seen, first

    return [f(data(n), limit) for n, limit in ((4, 1.0), (1, 0.0), (6, 9.0))]


def leaves_written_in_loops(jit):
    """An error in grad mode, from the first iteration on."""
    def counted(x, n):
        for _ in range(20):
            x -= 1
        return x

    def decided(x, n):
        while n > 0:
            x -= 1
            n = n - 1
        return x

    def views(x, n):
        view = x.view(-1)
        for _ in range(20):
            view *= 2
        return x

    def allowed(x, n):
        for _ in range(20):
            with tj.no_grad():
                x -= 1
        return x * 2

    out = []
    for body in (counted, decided, views, allowed):
        f = jit(body)
        for n in (3, 0):
            for leaf in (tj.ones(2, requires_grad=True), tj.ones(2)):
                out += [tried(f, leaf, tj.tensor(n)), leaf]
    return out


def histories_written_to_what_may_be_the_callers(jit):
    def whole(x, w):
        y = x.detach()
        if x.sum() > 0:
            y = y * 2
        y += w
        return y

    def row(x, w):
        y = x.detach()
        if x.sum() > 0:
            y = y * 2
        y[0] += w[0]
        return y

    def view(x, w):
        if x.sum() > 0:
            x = x * 2
        first = x[0]
        first += w[0]
        x += w
        return x, first

    out = []
    for body in (whole, row, view):
        f = jit(body)
        for sign in (1.0, -1.0, 1.0):
            x, w = tj.full((2,), sign), tj.tensor([2.0, 3.0], requires_grad=True)
            found = f(x, w)
            found = found if isinstance(found, tuple) else (found,)
            sum((t * t).sum() for t in found).backward()
            out += [found, x, w.grad, x.requires_grad]
    return out


PROGRAMS = programs_in(globals())
