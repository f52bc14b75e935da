"""Programs that use NumPy beside tensors: numbers of sizes, arrays made in the call, of which
tensors are made, arrays written later, and arrays made outside, whose content changes."""

from __future__ import annotations

import functools
import itertools

import numpy as np

import tracejit as tj
from tests.capture.program_list import programs_in
from tracejit.nn import functional as F


class Box:
    """Anything."""

    def __init__(self, **held):
        self.__dict__.update(held)


def rows(n):
    return tj.arange(3.0 * n).reshape(n, 3)


def runs(f, *counts):
    return [f(rows(n)) for n in counts or (2, 3, 2, 4, 2)]


def products_of_sizes(jit):
    def f(x):
        count = np.prod(x.shape)
        rows = x.reshape(np.prod(x.shape[:1]), -1)
        return x * float(count), x.reshape(int(count)), rows, count.item()

    return runs(jit(f))


def numbers_of_arrays(jit):
    def f(x, n, scale):
        a = np.full((n,), scale)
        a[1:] *= 2
        a += np.arange(n)
        np.add.at(a, [0, 0], 1)
        steps = np.linspace(0, scale, n)
        return (x * float(a.sum()), a.tolist(), np.cumsum([0, *x.shape]).tolist(), a.mean().item(),
                x[: int(np.ceil(n / 2))], [float(s) for s in steps])

    f = jit(f)
    return [f(rows(4), n, s) for n, s in ((2, 1.5), (3, 1.5), (2, 2.5), (4, 0.5), (2, 1.5))]


def tensors_of_arrays(jit):
    def f(x, n, scale):
        made = np.array([scale, n, scale * n])
        first = tj.tensor(made, dtype=tj.float32)
        made[0] = 7
        return x + first, tj.tensor(made), x * np.zeros(3, np.float32), tj.tensor(np.arange(n))

    f = jit(f)
    return [f(rows(2), n, s) for n, s in ((2, 1.5), (3, 1.5), (2, 2.5), (2, 1.5))]


def positions_of_arrays(jit):
    def f(x):
        at = np.array([0, 2])
        first = x[:, at]
        at[0] = 1
        return first, x[:, at], x.index_select(1, tj.tensor(at))

    return runs(jit(f))


def operands_that_are_arrays(jit):
    def f(x):
        weights = np.array([1.0, 2.0, 3.0], np.float32)
        first = x * weights
        weights[0] = 7
        return first, x * weights, np.multiply(x, weights)

    return runs(jit(f))


def arrays_over_tensors_written(jit):
    def f(x):
        a = np.zeros(3, np.float32)
        t = tj.from_numpy(a)
        before = t + x
        a[0] = 5
        t += 1
        return before, t + x, float(a.sum()), tj.as_tensor(a) * x

    return runs(jit(f))


def arrays_over_buffers(jit):
    def f(x):
        memory = bytearray(12)
        t = tj.frombuffer(memory, dtype=tj.float32)
        before = t + x
        memory[3] = 64
        return before, t + x, tj.from_dlpack(np.ones(3, np.float32)) * x

    return runs(jit(f))


def arrays_outside_change(jit):
    weights = np.ones(3)
    box, cell = Box(w=weights, inside=[weights], v=weights[1:]), {"w": weights}

    def f(x, w, other=weights):
        return (x * tj.tensor(weights), x * float(np.sum(box.w)), x * float(w.sum()),
                x * box.inside[0].tolist()[0], x * float(np.prod(cell["w"])), x * float(box.v[0]),
                x * float(np.array([other, w]).max()), x * weights, x[:, weights.astype(int) % 3])

    f, out = jit(f), []
    for k in range(5):
        weights[k % 3] = k + 1
        out.append(f(rows(2), weights))
    return out


def arrays_outside_over_tensors_written(jit):
    a, memory = np.arange(3, dtype=np.float32), bytearray(12)
    box = Box(a=a, t=tj.from_numpy(a), part=tj.from_numpy(a)[1:], late=a[1:])

    def later():
        box.late[0] += 3

    def f(x, t, memory, u):
        before, part = box.t + x, box.part * 2
        box.a[1] += 5
        memory[3] = 65
        between, shared = t * x, u + x[0]
        box.part.add_(1)
        later()
        memory[7] = 66
        return before, part, between, shared, u + x[0], box.t * x, box.a.tolist()

    f, out, u = jit(f), [], tj.frombuffer(memory, dtype=tj.float32)
    for n in (2, 3, 2, 2):
        out.append(f(rows(n), box.t, memory, u))
        a[0], memory[3], memory[7] = n, 0, 0
    return out


def arrays_met_late_over_tensors_written(jit):
    a = np.arange(3, dtype=np.float32)
    t = tj.from_numpy(a)

    def later():
        a[1] += 5

    def f(x):
        y = t + x
        later()
        return y, t + x, y.sum() * t

    return runs(jit(f))


def arrays_of_iterators_over_tensors_written(jit):
    a = np.arange(3, dtype=np.float32)
    t, given = tj.from_numpy(a), itertools.cycle([a])

    def f(x):
        y = t + x
        next(given)[1] += 5
        return y, t + x

    return runs(jit(f))


def arrays_that_a_cache_keeps(jit):
    @functools.lru_cache(None)
    def table(n):
        return np.ones(n)

    f, out = jit(lambda x: (x * tj.tensor(table(3)), x * float(table(3).sum()))), []
    for k in range(4):
        table(3)[0] = k
        out.append(f(rows(2)))
    return out


def arrays_returned_and_kept(jit):
    box = Box(last=None)

    def f(x):
        box.last = np.arange(x.shape[0])
        return np.zeros(x.shape[0]), x * 2

    f, out = jit(f), []
    for n in (2, 3, 2, 2):
        made, y = f(rows(n))
        made += 1
        out += [made.tolist(), y, box.last.tolist()]
        box.last[:] = 9
    return out


def arrays_of_values(jit):
    def f(x):
        found = np.array([x.sum().item(), 3.0])
        return x * float(found.max()), found.argmax().item()

    return runs(jit(f))


def sizes_read_before_an_array_ends_a_segment(jit):
    def mapped(a, b):
        w = tj.arange(6.0).view(3, 2)
        rows = tj.vmap(lambda w, y: y.scatter(0, tj.tensor([0]), w[:1]), (0, None))
        return rows(w, tj.from_numpy(a)), tj.vmap(lambda w, y: tj.cat([w, y]), (0, None))(
            w, tj.from_numpy(a))

    def ensemble(a, b):
        x, w = tj.from_numpy(np.outer(a, b)), tj.ones(3, 2, len(b))
        return tj.vmap(lambda w, x: F.linear(x, w), (0, None))(w, x)

    def indexed(a, b):
        u, i = (tj.from_numpy(x.argsort()) for x in (a, b))
        table, places = tj.arange(25.0).view(5, 5), u * 1
        out = [table[u[:, None], i[None]] + places.sum()]
        table[u[: len(i)], i[: len(u)]] = 1.0
        table[u[: len(i)], i[: len(u)]] += 1
        table[u[:, None], u[None]] = 2.0
        return [*out, table, table.index_put((u, u), tj.tensor(2.0))]

    def added(a, b):
        x, y = tj.from_numpy(a), tj.from_numpy(b)
        total = x.sum() + y.sum()
        rows = tj.zeros(2, len(a)).scatter_add(0, (x > 1).long()[None], x[None])
        return rows + total, tj.tensordot(x[:, None], y[None], 1) * total

    out = []
    for f in map(jit, (mapped, ensemble, indexed, added)):
        for n, m in ((4, 2), (4, 2), (2, 5), (3, 3), (5, 1)):
            a, b = (np.linspace(3, 0, k, dtype=np.float32) for k in (n, m))
            out.append(f(a, b))
    return out


PROGRAMS = programs_in(globals())
