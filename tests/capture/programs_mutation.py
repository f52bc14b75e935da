"""Programs on mutation and aliasing: each is run plainly and captured, and must show the same.

A program takes `jit` (a decorator) and returns everything its caller can see, after several calls
with changed state.
"""

from __future__ import annotations

import numpy as np

import tracejit as tj


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


def same_tensor_twice(jit):
    @jit
    def f(a, b):
        a.add_(1)
        return b * 2

    x, y = tj.ones(3), tj.zeros(3)
    return [f(x, y), f(x, x), x.clone(), f(x, y), f(y, y), x, y]


def overlapping_arguments(jit):
    @jit
    def f(a, b):
        a.add_(b)
        return a + b

    x = tj.arange(6.0)
    first = f(x[0:3], x[3:6])
    second = f(x[0:3], x[1:4])
    third = f(x[2:5], x[0:3])
    return [first, second, third, x]


def overlap_only_later(jit):
    @jit
    def f(a, b):
        a.mul_(3)
        return b + 0

    x, y = tj.ones(4), tj.full((4,), 2.0)
    out = [f(x, y), f(y[0:2], y[2:4]), f(y[0:3], y[1:4]), x, y]
    return out


def numpy_shares_memory(jit):
    @jit
    def f(x):
        x.sub_(1)
        return x

    array = np.arange(3, dtype=np.float32)
    x = tj.from_numpy(array)
    f(x)
    array[0] = 100
    f(x)
    return [x, tj.from_numpy(array.copy())]


def two_tensors_over_one_array(jit):
    @jit
    def f(a, b):
        a.add_(1)
        return b * 1

    array = np.zeros(3, np.float32)
    other = np.ones(3, np.float32)
    out = [
        f(tj.from_numpy(other), tj.from_numpy(array)),
        f(tj.from_numpy(array), tj.from_numpy(array)),
    ]
    return [*out, tj.from_numpy(array.copy())]


def returned_input(jit):
    @jit
    def f(x):
        return x

    x = tj.ones(2)
    y = f(x)
    y.add_(1)
    z = f(x)
    return [x, y is x, z is x]


def returned_view(jit):
    @jit
    def f(x):
        return x[1:]

    x = tj.arange(4.0)
    v = f(x)
    v.zero_()
    w = f(x)
    w.add_(5)
    return [x, v, w]


def outputs_that_alias_each_other(jit):
    @jit
    def f(x):
        y = x + 1
        return y, y.view(2, 2), y

    a, b, c = f(tj.arange(4.0))
    b.mul_(10)
    d, e, g = f(tj.arange(4.0))
    e.zero_()
    return [a, b, c, c is a, d, e, g]


def outputs_equal_but_apart(jit):
    @jit
    def f(x):
        return x + 1, x + 1

    out = []
    for _ in range(2):
        a, b = f(tj.ones(2))
        a.zero_()
        out += [a, b]
    return out


def clone_is_apart(jit):
    @jit
    def f(x):
        return x.clone(), x * 1, x + 0

    x = tj.ones(2)
    out = []
    for _ in range(2):
        a, b, c = f(x)
        a.add_(1)
        b.add_(2)
        c.add_(3)
        out += [a, b, c]
    return [*out, x]


def detach_shares(jit):
    @jit
    def f(x):
        d = x.detach()
        d.add_(1)
        return d

    x = tj.ones(3)
    d = f(x)
    d.mul_(2)
    e = f(x)
    return [x, d, e]


def swap_contents(jit):
    @jit
    def f(a, b):
        t = a.clone()
        a.copy_(b)
        b.copy_(t)

    a, b = tj.zeros(2), tj.ones(2)
    f(a, b)
    f(a, b)
    f(a, b)
    return [a, b]


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


def transposed_input_written(jit):
    @jit
    def f(x):
        x.add_(tj.arange(6.0).view(3, 2))
        return x.sum(0)

    x = tj.zeros(2, 3)
    return [f(x.t()), x.clone(), f(x.t()), x]


def expanded_input_read(jit):
    @jit
    def f(x):
        return x * 2 + 1

    base = tj.arange(3.0)
    return [f(base.expand(2, 3)), f(base.view(1, 3).expand(4, 3)), f(tj.ones(2, 3))]


def strided_inputs(jit):
    @jit
    def f(x):
        return (x * 2).sum(-1)

    x = tj.arange(24.0).view(4, 6)
    return [f(x), f(x[::2]), f(x[:, ::3]), f(x.t()), f(x[1:3, 2:5])]


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


def two_pieces_of_one_storage_are_written(jit):
    @jit
    def f(x, y):
        x.mul_(2)
        y[:1].neg_()
        return x._version, y._version

    out = []
    for _ in range(3):
        whole = tj.arange(9.0)
        out += [f(whole[1:], whole[:1]), whole, whole._version]
    return out


def float_argument_is_assigned(jit):
    @jit
    def f(x, number):
        x[0] = number

    x = tj.zeros(3, 2, dtype=tj.float64)
    f(x, 3.25)
    f(x[1:], 0.5)
    return [x]


def view_of_what_cannot_be_viewed(jit):
    @jit
    def f(x):
        x.view(-1).mul_(2)

    def told(x):
        try:
            f(x)
        except RuntimeError as error:
            return str(error)
        return "viewed"

    out = []
    for shape in ((2, 3, 4), (2, 1, 4), (2, 0, 4), (1, 5, 1)):
        x = tj.ones(shape)
        views = (x, x.permute(2, 1, 0), x[..., 1:], x[:, :1], x.sum(0, keepdim=True).expand(shape))
        out += [(told(v), v, v._version) for v in views]
    return out


def reshape_of_transposed_of_sizes_0_and_1(jit):
    @jit
    def f(x):
        x.t().reshape(-1).clamp_(-1, 1)

    out = []
    for shape in ((17, 0), (3, 3), (1, 5), (5, 1), (0, 2)):
        x = tj.ones(shape) * 2
        f(x)
        out += [x, x._version]
    return out


def mask_write_on_empty_expanded(jit):
    @jit
    def f(x):
        y = x.unsqueeze(0).expand(2, -1, -1)
        y[y > 0] = 2

    def told(x):
        try:
            f(x)
        except RuntimeError as error:
            return str(error)
        return x._version

    return [told(tj.ones(shape)) for shape in ((0, 1), (2, 3), (4, 0))]


def squeeze_of_flattened_sizes_1(jit):
    @jit
    def f(x):
        y = x.exp().reshape(-1).squeeze()
        y.tanh_()
        return y, y.shape

    return [f(tj.ones(shape)) for shape in ((1, 1), (2, 1), (2, 3))]


def reshaped_results_are_apart(jit):
    @jit
    def f(x):
        y = x + 1
        x.add_(5)
        return y, y.unsqueeze(-1) * 1, (y * 1).view(1, -1), (x * 1).view(-1, 1)

    out = []
    for _ in range(2):
        x = tj.ones(3)
        results = f(x)
        for k, result in enumerate(results):
            result.add_(10.0**k)
        out += [*results, x]
    return out


PROGRAMS = [
    f for f in list(globals().values()) if callable(f) and getattr(f, "__module__", "") == __name__
]
