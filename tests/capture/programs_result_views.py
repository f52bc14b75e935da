"""Programs whose results are views, of arguments and of each other, which the caller writes; views
and arrays that are written inside."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import leaf, tried
from tests.capture.program_list import programs_in


def now(*tensors):
    return [None if t is None else t.detach().clone() for t in tensors]


def view_of_what_nobody_holds_is_written(jit):
    w = leaf(1.0, 2.0, 3.0, 4.0)
    f = jit(lambda x: (w * x).view(2, 2).t())
    out = []
    for k in range(3):
        y = f(tj.ones(4) * (k + 1))
        y.mul_(2)
        (y * y).sum().backward()
        out += [*now(y, w.grad), y._is_view(), y._base.requires_grad]
        w.grad = None
    return out


def parts_of_what_nobody_holds_are_written(jit):
    w = leaf(-1.0, 2.0, -3.0, 4.0)

    @jit
    def f(x):
        y = w * x
        return y[:2], y[2:]

    out = []
    for k in range(4):
        a, b = f(tj.ones(4) * (k + 1))
        if k:
            a.mul_(-2)
        if k > 1:
            b.mul_(k)
        (a.sum() + (b * b).sum()).backward()
        out += [a._base is b._base, *now(a, b, w.grad)]
        w.grad = None
    return out


def heads_of_one_product(jit):
    w = leaf(*(float(k) for k in range(12)))

    @jit
    def f(x):
        q, k, v = (w * x).view(2, 3, 2).unbind(1)
        return q, k.t(), v

    out = []
    for k in range(3):
        q, key, v = f(tj.ones(12) * (k + 1))
        ((q @ key) * v.sum()).sum().backward()
        out += [q._base is v._base, *now(q, key, v, w.grad)]
        w.grad = None
    return out


def result_and_views_of_it_are_written(jit):
    w = leaf(1.0, 2.0, 3.0, 4.0)

    @jit
    def f(x):
        y = w * x
        turned = y.view(2, 2).t()
        return y, turned, turned[0]

    out = []
    for k in range(4):
        y, turned, row = f(tj.ones(4) * (k + 1))
        grads = []
        if k == 0:
            turned.register_hook(lambda g, to=grads: to.append(g.clone()))
        y.retain_grad()
        if k == 1:
            row.mul_(3)
        elif k == 2:
            y.mul_(y.detach() + 1)
        elif k == 3:
            turned.add_(1)
        (row * row).sum().backward()
        out += [turned._base is y, row._base is y, *now(y, turned, row, w.grad, y.grad, *grads)]
        w.grad = None
    return out


def view_of_an_argument_gets_a_parameter_written_in(jit):
    f = jit(lambda x: x[1:])
    w = leaf(2.0, 3.0)
    out = []
    for k in range(3):
        x = tj.arange(3.0) + k
        v = f(x)
        v.mul_(w)
        (x * x).sum().backward()
        out += [v._base is x, x.requires_grad, *now(x, v, w.grad)]
        w.grad = None
    return out


def view_of_an_argument_with_a_history_is_written(jit):
    f = jit(lambda h: h.view(-1)[1:])
    out = []
    for _ in range(3):
        w = leaf(0.0, 1.0, 2.0, 3.0)
        h = (w * 2).view(2, 2)
        v = f(h)
        v.mul_(10)
        h.sum().backward()
        out += [v._base is h._base, *now(h, v, w.grad)]
    return out


def view_of_a_leaf_argument_is_written(jit):
    f = jit(lambda w: w[0])
    out = []
    for _ in range(3):
        w = tj.ones(2, 2).requires_grad_()
        v = f(w)
        out.append(isinstance(tried(v.mul_, 2), RuntimeError))
        with tj.no_grad():
            v.add_(1)
        v.sum().backward()
        out += [v._base is w, *now(w, w.grad)]
    return out


def leaf_made_inside_and_a_view_of_it(jit):
    @jit
    def f(x):
        leaf = (x * 2).requires_grad_()
        return leaf, leaf[1:]

    out = []
    for k in range(3):
        p, v = f(tj.ones(3) * k)
        (v * v).sum().backward()
        out += [p.is_leaf, v._base is p, v.requires_grad, *now(p, v, p.grad)]
    return out


def views_of_a_result_in_and_out_of_grad_mode(jit):
    w = leaf(1.0, 2.0, 3.0)

    @jit
    def f(x):
        y = w * x
        with tj.no_grad():
            quiet = y[1:]
        return y, quiet, y.detach()[:1], y[1:]

    out = []
    for k in range(3):
        y, quiet, apart, v = f(tj.ones(3) + k)
        refused = isinstance(tried(quiet.mul_, w[1:]), RuntimeError)
        out += [refused, quiet._base is y, apart._base is y]
        apart.mul_(3)
        v.mul_(2)
        y.sum().backward()
        out += [apart.requires_grad, *now(y, quiet, apart, v, w.grad)]
        w.grad = None
    return out


def stale_view_is_an_argument(jit):
    f = jit(lambda v: (v * v).sum())
    out = []
    for k in range(4):
        w, base = leaf(1.0, 2.0), tj.zeros(4)
        v = base[:2]
        if k % 2:
            base[:2] = w * 3
        y = f(v)
        if y.requires_grad:
            y.backward()
        out += [y.requires_grad, *now(y, w.grad)]
    return out


def data_of_an_argument_and_of_a_result(jit):
    @jit
    def f(x):
        y = x * 2
        return x.data, y, y.data

    out = []
    for _ in range(3):
        w = leaf(1.0, 2.0)
        x = w * 1
        z = (x * x).sum()
        d, y, e = f(x)
        versions = [x._version, y._version]
        d.mul_(3)
        e.add_(1)
        z.backward()
        out += [x._version - versions[0], y._version - versions[1], e._version, *now(y, w.grad)]
    return out


def enable_grad_inside_no_grad(jit):
    w = leaf(1.0, 2.0)

    @jit
    def f(x):
        with tj.enable_grad():
            y = (x * w).exp().sum()
        return y, x * w

    out = []
    for k in range(3):
        with tj.no_grad():
            y, z = f(tj.ones(2) * k)
        y.backward()
        out += [y.requires_grad, z.requires_grad, *now(y, z, w.grad)]
        w.grad = None
    return out


def view_whose_elements_overlap_is_written(jit):
    @jit
    def f(x):
        windows = x.unfold(0, 2, 1)
        windows[:, 0] = tj.tensor([5.0, 6.0, 7.0])
        total = windows.sum(1)
        pairs = x.as_strided((3, 2), (1, 1))
        pairs[1].mul_(2)
        return total, windows * 1, pairs.sum(), x

    return [f(tj.arange(4.0) + k) for k in range(3)]


def array_and_tensor_over_one_memory_are_written_by_turns(jit):
    @jit
    def f(x, n):
        y = x * 2
        array = y.numpy()
        array[0] = 100
        z = y + 1
        y.add_(1)
        total = float(array.sum())
        array[1] = -100
        flat = y.view(-1)
        array[2] = n
        return y, z, flat * 1, tj.cat([flat, x]), total

    return [f(tj.arange(3.0) + k, k) for k in range(3)]


PROGRAMS = programs_in(globals())
