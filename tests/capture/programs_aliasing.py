"""Programs on who shares memory with whom: arguments, results, views, strided and expanded inputs.

A program takes `jit` (a decorator) and returns everything its caller can see, after several calls
with changed state.
"""

from __future__ import annotations

import numpy as np

import tracejit as tj
from tests.capture.program_list import programs_in


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


def overlap_across_another(jit):
    """What overlaps the written memory begins before a third one that ends before it."""
    @jit
    def f(a, b, c):
        c.add_(10)
        return a * 1, b * 1

    x = tj.arange(10.0)
    apart = [tj.arange(10.0), tj.ones(2), tj.zeros(3)]
    return [f(*apart), *apart, f(x, x[1:3], x[5:8]), x]


def overlap_after_many_calls(jit):
    """What a snapshot vouches for is written; arguments lie elsewhere in each call, then in it."""
    kept, rows = tj.zeros(4), tj.arange(24.0)

    @jit
    def f(a, b):
        kept.add_(a)
        return kept * b

    out = [f(rows[k : k + 4], rows[20:24]) for k in range(8)]
    out += [f(rows[0:4], kept), f(kept, rows[0:4]), f(kept, kept), f(rows[2:6], kept[:4])]
    array = np.ones(4, np.float32)
    own = tj.from_numpy(array)
    out += [f(rows[4:8], own), f(own, rows[4:8]), kept]
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


def view_of_what_cannot_be_viewed(jit):
    @jit
    def f(x):
        x.view(-1).mul_(2)

    def told(x):
        try:
            f(x)
        except RuntimeError as error:
            return error
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
            return error
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


PROGRAMS = programs_in(globals())
