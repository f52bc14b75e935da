"""Programs on sizes and kinds of tensors that change between calls: none, one and many."""

from __future__ import annotations

import numpy as np

import tracejit as tj
from tests.capture.program_list import programs_in


def dtype_and_rank(jit):
    f = jit(lambda x: x * 2 + 1)
    return [
        f(tj.ones(2)),
        f(tj.ones(2, dtype=tj.float64)),
        f(tj.ones(2, dtype=tj.int64)),
        f(tj.ones(2, 2)),
        f(tj.tensor(3.0)),
        f(tj.tensor(True)),
    ]


def batch_of_many_sizes(jit):
    f = jit(lambda x, b: (x + b).sum(0) / x.shape[0])
    return [f(tj.ones(n, 3), tj.arange(3.0)) for n in (5, 1, 2, 7, 64, 3)]


def zero_size(jit):
    f = jit(lambda x: (x * 2).sum(1))
    return [f(tj.ones(3, 2)), f(tj.ones(0, 2)), f(tj.ones(3, 0)), f(tj.ones(1, 1))]


def broadcast_appears(jit):
    f = jit(lambda a, b: a + b)
    return [
        f(tj.ones(4), tj.ones(4)),
        f(tj.ones(4), tj.ones(1)),
        f(tj.ones(1), tj.ones(4)),
        f(tj.ones(1), tj.ones(1)),
    ]


def size_branched_on(jit):
    f = jit(lambda x: x * 2 if x.shape[0] > 3 else x * 3)
    return [f(tj.ones(n)) for n in (2, 5, 3, 4, 1, 0)]


def size_returned(jit):
    f = jit(lambda x: (x.shape[0] * 2, x.numel(), x.size(), x.view(-1).shape))
    return [f(tj.ones(2, 3)), f(tj.ones(4, 5))]


def size_in_python_loop(jit):
    @jit
    def f(x):
        total = x[0] * 0
        for k in range(x.shape[0]):
            total = total + x[k] * k
        return total

    return [f(tj.ones(n)) for n in (2, 5, 1)]


def size_kept_over_a_break(jit):
    @jit
    def f(x):
        n = x.shape[0]
        y = tj.cat([x, x])
        if bool(y.sum() > 0):
            y = y * 2
        m = y.shape[0]
        return y.view(n, 2), m - n, m == n, n == x.shape[0], m // n, n < m, m % n, m * n

    return [f(tj.ones(n)) for n in (3, 4, 1)]


def writes_to_parts_of_nothing(jit):
    @jit
    def f(x):
        flat = x.reshape(-1)
        flat[1:] = flat * 2
        return flat, x

    return [f(tj.zeros(shape)) for shape in ((0, 37, 0, 3), (1, 1), (0,), (2, 0))]


def sizes_given_by_ints_of_any_sign(jit):
    def shape_or_error(f, *args):
        try:
            return f(*args)
        except RuntimeError as e:
            return type(e).__name__

    viewed = jit(lambda x, n: x.view(n, -1).sum(1))
    shaped = jit(lambda x, n: x.reshape(2, n, -1) + n)
    wide = jit(lambda x, n: x.view(12, 1).expand(n, 2) * 1)
    out = []
    for n in (1, 2, 3, 5, -3, -1, 0, 12, 3):
        out += [shape_or_error(f, tj.arange(12.0), n) for f in (viewed, shaped, wide)]
    return out


def strides_of_dimensions_of_size_one(jit):
    @jit
    def f(x):
        t = x.t()
        part = x[:, ::2]
        views = (t.unsqueeze(0), t.unsqueeze(1), t.unsqueeze(-1), t[None, :, None],
                 part.view(1, 2, x.shape[0] // 2, 2), part.view(x.shape[0], 1, 2, 1),
                 t.expand(2, 1, *t.shape), t[:, :1].expand(2, 4, 1), t[:1].expand(3, 1, t.shape[1]))
        return [v.stride() for v in views]

    return [f(tj.arange(4.0 * n).view(n, 4)) for n in (2, 4, 6, 2)]


def offsets_of_slices_without_elements(jit):
    @jit
    def f(x, n):
        rows = x.view(2, -1)
        views = (x[n:], x[n:n], x[1:], x[n:n].unsqueeze(0), rows[:, 3:3], rows[1:, 4:])
        return [v.storage_offset() for v in views], x[n:].numel()

    x = tj.arange(10.0)
    return [f(x[:8], 8), f(x[:8], 2), f(x[2:], 3), f(x[:8], 0), f(x[2:], 1)]


def sizes_and_numbers_in_functions_of_numpy(jit):
    class Box:
        k, half = 3, 0.5

    def types(*values):
        return [str(getattr(v, "dtype", type(v))) for v in values]

    @jit
    def f(x):
        n, k = x.shape[0], Box.k
        scaled = x / np.sqrt(x.size(-1)) * float(np.log(n)) + np.power(Box.half, 2)
        first = min(2 * np.ceil(np.log(n)).astype("int").item(), n)
        return scaled[:first], first, np.float32(2) * n * x, types(
            np.float32(2) * n, n * np.float32(2), np.float32(2) * k, Box.half * np.float32(2),
            np.int8(3) + k, np.add(n, k), np.maximum(n, np.float32(1)), np.int32(4) // n)

    @jit
    def g(x):
        ones, n = np.ones(2, dtype="float32"), x.shape[0]
        total = int(np.array([n, 2]).sum())
        return (x[np.arange(n), np.zeros(n, dtype=int)] * np.prod(x.shape), total,
                types(ones * n, n * ones, ones * Box.half, np.array([n, Box.k])))

    xs = [tj.arange(5.0 * n).view(n, 5) for n in (4, 4, 2, 7)]
    return [(f(x), g(x)) for x in xs]


PROGRAMS = programs_in(globals())
