"""Programs on writes: in place, through views, masks and indices, into buffers and containers.

A program takes `jit` (a decorator) and returns everything its caller can see, after several calls
with changed state.
"""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import tried
from tests.capture.program_list import programs_in


def add_to_input(jit):
    @jit
    def f(x):
        x.add_(1)
        return x * 2

    x = tj.arange(4.0)
    return [f(x), x, f(x), x, x._version]


def write_through_slice(jit):
    @jit
    def f(x):
        x[1:3] = x[1:3] * 10
        return x.sum()

    x = tj.arange(5.0)
    return [f(x), x.clone(), f(x), x]


def write_through_view_of_input(jit):
    @jit
    def f(v):
        v.mul_(2)

    x = tj.arange(6.0)
    f(x[2:4])
    f(x.view(2, 3)[1])
    f(x.view(2, 3).t()[0])
    return [x]


def view_made_before_write(jit):
    @jit
    def f(x):
        v = x[0]
        x.add_(1)
        return v * 1

    x = tj.arange(4.0).view(2, 2)
    return [f(x), f(x), x]


def write_to_view_seen_by_base(jit):
    @jit
    def f(x):
        y = x * 1
        v = y.t()
        v[0] = 7
        return y, v

    return [f(tj.arange(6.0).view(2, 3)), f(tj.arange(4.0).view(2, 2))]


def read_after_write_order(jit):
    @jit
    def f(x):
        before = x * 1
        x.zero_()
        after = x * 1
        x.add_(3)
        return before, after, x * 1

    x = tj.ones(2)
    return [f(x), x.clone(), f(x), x]


def fill_and_copy_cast(jit):
    @jit
    def f(x, y):
        x.copy_(y)
        x.add_(0.5)
        return x.sum()

    x = tj.zeros(3)
    return [f(x, tj.arange(3)), x.clone(), f(x, tj.arange(3) * 2), x]


def index_assignment(jit):
    @jit
    def f(x, i):
        x[i] = -1.0
        return x.sum()

    x = tj.arange(6.0)
    return [f(x, tj.tensor([0, 2])), x.clone(), f(x, tj.tensor([5, 5])), x]


def mask_assignment(jit):
    @jit
    def f(x):
        x[x > 2] = 0.0
        return x * 1

    x = tj.arange(6.0)
    return [f(x), x.clone(), f(x + 3), x]


def masked_fill_in_place(jit):
    @jit
    def f(x, m):
        x.masked_fill_(m, 9.0)

    x = tj.arange(4.0)
    f(x, x > 1)
    f(x, x < 1)
    return [x]


def accumulate_in_argument(jit):
    @jit
    def f(total, x):
        total += x
        return total

    total = tj.zeros(2)
    out = f(total, tj.ones(2))
    f(total, tj.ones(2) * 2)
    return [total, out is total]


def version_seen_outside(jit):
    @jit
    def f(x):
        x.add_(1)
        x.mul_(2)

    x = tj.ones(2)
    seen = [x._version]
    for _ in range(3):
        f(x)
        seen.append(x._version)
    return seen


def write_in_no_grad(jit):
    w = tj.ones(3, requires_grad=True)

    @jit
    def f(g):
        with tj.no_grad():
            w.sub_(g * 0.1)
        return w * 1

    return [f(tj.ones(3)).detach(), f(tj.ones(3)).detach(), w.detach(), w.is_leaf]


def buffers_updated(jit):
    class Norm(tj.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", tj.zeros(3))

        def forward(self, x):
            if self.training:
                self.mean.mul_(0.9).add_(x.mean(0) * 0.1)
            return x - self.mean

    module = Norm()
    f = jit(lambda x: module(x))
    x = tj.arange(6.0).view(2, 3)
    out = [f(x), f(x)]
    module.eval()
    out.append(f(x))
    module.train()
    out.append(f(x))
    return [*out, module.mean]


def attribute_rebound(jit):
    class State:
        def __init__(self):
            self.hidden = tj.zeros(2)

    state = State()

    @jit
    def f(x):
        state.hidden = state.hidden * 0.5 + x
        return state.hidden.sum()

    out = []
    for k in range(4):
        out.append(f(tj.ones(2) * k))
        out.append(state.hidden.clone())
    state.hidden = tj.full((2,), 100.0)
    out.append(f(tj.zeros(2)))
    return [*out, state.hidden]


def list_of_tensors_updated(jit):
    state = [tj.zeros(2), tj.ones(2)]

    @jit
    def f(x):
        state[0] = state[0] + x
        state[1].mul_(2)
        return state[0] * state[1]

    return [f(tj.ones(2)), f(tj.ones(2)), f(tj.ones(2)), list(state)]


def dict_filled(jit):
    cache = {}

    @jit
    def f(x):
        if "last" in cache:
            y = x + cache["last"]
        else:
            y = x * 2
        cache["last"] = y
        return y

    return [f(tj.ones(2)), f(tj.ones(2)), f(tj.ones(2)), dict(cache)]


def list_appended(jit):
    history = []

    @jit
    def f(x):
        y = x * 2
        history.append(y.sum())
        return y

    for k in range(4):
        f(tj.ones(2) * k)
    return [history, len(history)]


def float_argument_is_assigned(jit):
    @jit
    def f(x, number):
        x[0] = number

    x = tj.zeros(3, 2, dtype=tj.float64)
    f(x, 3.25)
    f(x[1:], 0.5)
    return [x]


def versions_after_a_segment(jit):
    def written(x):
        y = x * 2
        y.add_(1)
        y.mul_(3)
        return [y, y * float(bool(x.sum() > 0))]

    def added(x):
        y = x * 2
        z = y[:1]
        bool(x.sum() > 0)
        z.add_(1)
        return [y, z]

    def program(way):
        f, out = jit(way), []
        for k in range(3):
            made = f(tj.ones(2) + k)
            out += [made, [t._version for t in made]]
        return out

    return [program(way) for way in (written, added)]


def data_of_before_a_break_is_written_after_it(jit):
    def program(way):
        @jit
        def f(x, w):
            y, seen = x @ w, way(w)
            rows = len(tj.nonzero(w[0] > 0))
            seen.add_(rows)
            seen[0].mul_(2)
            return y, w._version

        out = []
        for n in (2, 3, 2):
            x, w = tj.ones(2, n, requires_grad=True), tj.ones(n, n)
            y, version = f(x, w)
            out += [tried(y.sum().backward), x.grad, w, version, w._version]
        return out

    ways = [lambda w: w.data, lambda w: w.data.t(), lambda w: w.detach(), lambda w: w]
    return [program(way) for way in ways]


def versions_of_results(jit):
    @jit
    def f(x):
        y, z = x * 2, x + 1
        y.add_(1)
        y.mul_(2)
        row = y[0]
        x.add_(1)
        return y, row, z, x

    out = []
    for n in (2, 3, 2):
        results = f(tj.ones(n))
        results[1].mul_(2)
        out.append([t._version for t in results])
    return out


def shapes_changed_in_place(jit):
    @jit
    def f(x):
        y, z = x * 2, x + 1
        row = y[0]
        y.unsqueeze_(1).transpose_(0, 2)
        row.mul_(3)
        z.t_().add_(1)
        z[:, :1].squeeze_(1).zero_()
        return y, row, z, z + y[:, 0], y._version

    return [f(tj.arange(6.0).view(2, 3)), f(tj.ones(3, 2)), f(tj.ones(2, 3))]


def shape_of_a_view_changed_in_place(jit):
    @jit
    def f(x):
        row = x[0] if x.ndim > 1 else x.view(-1)
        row.unsqueeze_(0)
        row.add_(1)
        return row, row.shape

    x = tj.arange(6.0).view(2, 3)
    return [f(x), x, f(x), x, x._version]


def shapes_changed_in_place_before_backward(jit):
    weight = tj.arange(6.0).view(2, 3).requires_grad_()

    @jit
    def f(x):
        weight.grad = None
        y = weight * x
        part = y[1]
        y.t_()
        y.mul_(2)
        part.unsqueeze_(0).mul_(x[:1])
        part.squeeze_(0)
        loss = (y * y).sum() + part.sum()
        loss.backward()
        return y.detach(), loss.detach(), weight.grad

    return [f(tj.arange(6.0).view(2, 3) - 1), f(tj.ones(2, 3))]


def shapes_changed_in_place_with_history(jit):
    @jit
    def f(x):
        y = x.exp()
        z = y * 2
        return z.unsqueeze_(0), y

    x = tj.arange(3.0).requires_grad_()
    out = []
    for _ in range(3):
        z, y = f(x)
        z.mul_(2)
        out += [z.shape, tj.autograd.grad(z.sum() + y.sum(), x)]
    return out


def shapes_changed_in_place_by_flow(jit):
    @jit
    def f(x, n):
        y = x * 1
        if x.sum() > 3:
            z = x * 2
            z.unsqueeze_(0)
        else:
            z = (x * 3).unsqueeze(0)
        if x.sum() > 4:
            y.unsqueeze_(0)
        for _ in range(n):
            z.squeeze_(0)
            z = (z * x.sum()).unsqueeze(0)
        return y, z

    return [f(tj.ones(2), 2), f(tj.ones(4), 3), f(tj.ones(5), 5)]


def wrong_uses_of_shapes_changed_in_place(jit):
    @jit
    def f(x):
        y = x.exp()
        y.unsqueeze_(0)
        y.sum().backward()
        return x.grad

    out = []
    for _ in range(3):
        try:
            out.append(f(tj.ones(3, requires_grad=True)))
        except RuntimeError as error:
            out.append("modified by an inplace operation" in str(error))
    return out


PROGRAMS = programs_in(globals())
