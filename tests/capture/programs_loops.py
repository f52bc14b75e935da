"""Programs that loop over sizes and tensors: carried state, lists, gradients, memory.

Each runs several lengths, 0 and 1 among them, and shows results, gradients and the caller's
tensors.
"""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import LENGTHS, data, filled, over_lengths, tried, weights
from tests.capture.program_list import programs_in
from tracejit import nn


def recurrent_by_index(jit):
    w = weights()

    @jit
    def f(x):
        h = tj.zeros(3)
        for t in range(x.shape[0]):
            h = tj.tanh(x[t] + h @ w)
        return h

    return [*over_lengths(f), w.grad]


def recurrent_by_iteration(jit):
    w = weights()

    @jit
    def f(x):
        h = tj.zeros(3)
        for item in x:
            h = tj.tanh(item + h @ w)
        return h

    return [*over_lengths(f), w.grad]


def stacked_outputs(jit):
    w = weights()

    @jit
    def f(x):
        outputs = []
        h = tj.zeros(3)
        for t in range(x.shape[0]):
            h = tj.tanh(x[t] + h @ w)
            outputs.append(h)
        return tj.stack(outputs)

    return [*over_lengths(f), w.grad]


def joined_outputs(jit):
    @jit
    def f(x):
        outputs = [tj.zeros(1, 3)]
        for t in range(x.shape[0]):
            outputs.append((x[t] * 2).unsqueeze(0))
        return tj.cat(outputs, 0), tj.cat(outputs, dim=1)

    return [f(data(n)) for n in LENGTHS]


def lists_grown_by_operator(jit):
    w = weights()

    @jit
    def f(x):
        h, outputs, doubled = tj.zeros(3), [], [x.sum(0)]
        same = outputs
        for t in range(x.shape[0]):
            h = tj.tanh(x[t] + h @ w)
            outputs += [h]
        for t in range(x.shape[0]):
            doubled += [x[t] * 2]
        return tj.stack(doubled).sum(0) * len(outputs) + (tj.stack(same) if len(same) else 0)

    return [*over_lengths(f), w.grad]


def list_grown_and_replaced(jit):
    @jit
    def f(x):
        kept, both = [], []
        for t in range(x.shape[0]):
            kept += [x[t] * t]
            both += [x[t], x[t] + 1]
            if len(kept) > 3:
                kept = []
        return kept, both

    return [f(data(n)) for n in LENGTHS]


def list_returned(jit):
    @jit
    def f(x):
        outputs = []
        for t in range(x.shape[0]):
            outputs.append(x[t] * t)
        return outputs

    return [f(data(n)) for n in LENGTHS]


def list_looked_at(jit):
    @jit
    def f(x):
        outputs = []
        for t in range(x.shape[0]):
            outputs.append(x[t].sum())
        return outputs[-1], len(outputs), sum(outputs), max(outputs)

    return [f(data(n)) for n in LENGTHS]


def list_of_the_caller(jit):
    @jit
    def f(x, kept):
        for t in range(x.shape[0]):
            kept.append(x[t] + 1)
        return len(kept)

    out = []
    for n in (2, 20):
        kept = []
        out += [f(data(n), kept), kept]
    return out


def tuple_state(jit):
    @jit
    def f(x):
        state = (tj.zeros(3), tj.ones(3))
        for t in range(x.shape[0]):
            h, c = state
            c = c * 0.5 + x[t]
            state = (tj.tanh(c), c)
        return state[0] + state[1]

    return over_lengths(f)


def sum_from_zero(jit):
    @jit
    def f(x):
        total = 0
        for t in range(x.shape[0]):
            total = total + (x[t] * (t + 1)).sum()
        return total

    return over_lengths(f)


def sum_in_place(jit):
    @jit
    def f(x):
        total = tj.zeros(())
        for t in range(x.shape[0]):
            total += (x[t] * x[t]).sum()
        return total

    return over_lengths(f)


def product_in_place_without_gradients(jit):
    @jit
    def f(x, total):
        for t in range(x.shape[0]):
            total.mul_(0.9).add_(x[t])
        return total * 1

    out = []
    for n in LENGTHS:
        total = tj.ones(3)
        out += [f(data(n), total), total]
    return out


def rows_written(jit):
    @jit
    def f(x, out):
        for t in range(x.shape[0]):
            out[t] = x[t] * 2 + t
        return out.sum()

    result = []
    for n in LENGTHS:
        out = tj.zeros(n, 3)
        result += [f(data(n), out), out]
    return result


def rows_written_with_gradients(jit):
    @jit
    def f(x):
        out = tj.zeros(x.shape)
        for t in range(x.shape[0]):
            out[t] = x[t] * x[t]
        return out

    return over_lengths(f, (4, 2, 20))


def backwards(jit):
    @jit
    def f(x):
        h = tj.zeros(3)
        for t in reversed(range(x.shape[0])):
            h = h * 0.5 + x[t]
        for t in range(x.shape[0] - 1, -1, -1):
            h = h * 0.5 + x[t]
        for t in range(x.shape[0]):
            h = h * 0.5 + x[x.shape[0] - 1 - t]
        return h

    return over_lengths(f)


def neighbours(jit):
    @jit
    def f(x):
        total = tj.zeros(3)
        for t in range(1, x.shape[0]):
            total = total + (x[t] - x[t - 1]).abs()
        for t in range(0, x.shape[0] - 2, 2):
            total = total + x[t] * x[t + 2]
        return total

    return over_lengths(f)


def columns(jit):
    @jit
    def f(x):
        h = tj.zeros(x.shape[0])
        for t in range(x.shape[1]):
            h = h * 0.5 + x[:, t] * t
        return h, x[..., 0] * 1

    return [f(tj.arange(float(n * m)).view(n, m)) for n, m in ((2, 3), (3, 20), (1, 1))]


def enumerated(jit):
    @jit
    def f(x, y):
        h = tj.zeros(3)
        for t, item in enumerate(x):
            h = h * 0.9 + item * t
        for a, b in zip(x, y):
            h = h + a * b
        return h

    return [f(data(n), data(n, seed=7)) for n in LENGTHS]


def last_value_after_the_loop(jit):
    @jit
    def f(x):
        for t in range(x.shape[0]):
            y = x[t] * 2
        return y + t

    return over_lengths(f)


def nothing_after_no_iteration(jit):
    @jit
    def f(x):
        h = x.sum() + 1
        for t in range(x.shape[0]):
            h = h + x[t].sum()
        return h

    return [f(data(n)) for n in (0, 1, 5, 0)]


def loop_over_layers(jit):
    layers = filled(nn.ModuleList([nn.Linear(3, 3) for _ in range(4)]))

    @jit
    def f(x):
        for layer in layers:
            x = tj.tanh(layer(x))
        for k in range(len(layers)):
            x = layers[k](x) * (k + 1)
        return x

    return [*over_lengths(f), layers[0].weight.grad]


def cell_module(jit):
    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.input, self.state = nn.Linear(3, 4), nn.Linear(4, 4)

        def forward(self, x, h):
            return tj.tanh(self.input(x) + self.state(h))

    cell = filled(Cell())

    @jit
    def f(x):
        h = tj.zeros(4)
        outputs = []
        for t in range(x.shape[0]):
            h = cell(x[t], h)
            outputs.append(h)
        return tj.stack(outputs, dim=1)

    return [*over_lengths(f), cell.input.weight.grad, cell.state.bias.grad]


def training_inside(jit):
    w = weights()
    optimizer = tj.optim.SGD([w], lr=0.05)

    @jit
    def step(x):
        optimizer.zero_grad()
        h = tj.zeros(3)
        for t in range(x.shape[0]):
            h = tj.tanh(x[t] + h @ w)
        loss = (h * h).sum()
        loss.backward()
        optimizer.step()
        return loss

    return [*(step(data(n)) for n in (4, 7, 4, 1)), w.detach() * 1]


def second_derivatives_of_a_loop(jit):
    @jit
    def f(x):
        h = tj.ones(3)
        for t in range(x.shape[0]):
            h = h * x[t].sin()
        return h.sum()

    out = []
    for n in (3, 17):
        x = data(n).requires_grad_()
        (g,) = tj.autograd.grad(f(x), x, create_graph=True)
        (h,) = tj.autograd.grad((g * g).sum(), x)
        out += [g, h]
    return out


def constant_range(jit):
    @jit
    def f(x):
        for _ in range(40):
            x = x * 0.9 + 0.1
        return x

    return over_lengths(f)


def aliased_state(jit):
    @jit
    def f(x, h):
        a = h
        b = h
        for t in range(x.shape[0]):
            a = a + x[t]
            b = b * 2
        return a, b, h

    return [f(data(n), tj.ones(3)) for n in LENGTHS]


def swapped_state(jit):
    @jit
    def f(x):
        a, b = tj.zeros(3), tj.ones(3)
        for t in range(x.shape[0]):
            a, b = b, a + x[t]
        return a - b

    return over_lengths(f)


def unused_result(jit):
    @jit
    def f(x):
        a, b = tj.zeros(3), tj.zeros(3)
        for t in range(x.shape[0]):
            a = a + x[t]
            b = b + a.exp()
        return a

    return over_lengths(f)


def bools_and_floats_of_an_iteration(jit):
    @jit
    def bools(x):
        s, t = tj.zeros(3), 0
        for i, r in enumerate(x):
            a, b = i > 3, i % 2 == 0
            if a & b:
                s = s + 1
            if a ^ b or not i:
                s = s + r * a + -b
            t = t + a + b * 3 - (i > 7)
            s = s * (1 + a * 0.5) + (5 if i > 2 else -i)
        return s, t

    @jit
    def floats(x):
        f, g, s = 1.0, float("inf"), tj.zeros(3)
        for i, r in enumerate(x):
            f = -f * 0.5 + i / 4 - 0.1
            if i == 2:
                g = g - g
            if g != g or not g <= 0:
                s = s + r
            if 0.1 < f / 3 <= 2:
                s = s - f
        return s, f, g

    return [tried(f, data(n)) for f in (bools, floats) for n in (*LENGTHS, 0)]


def targets_of_a_loop(jit):
    @jit
    def nested(x):
        s = tj.zeros(3)
        for i, (a, (b, c)) in enumerate(zip(x, zip(x, x.flip(0)))):
            s = s + a * b - c * i
        return s

    @jit
    def over_itself(x):
        for x in x:  # noqa: B020
            x = x * 2
        return x

    @jit
    def deleted(x):
        for r in x:
            s = r * 2
            del r
        return s, r  # noqa: F821

    return [tried(f, data(n)) for f in (nested, over_itself, deleted) for n in (*LENGTHS, 0)]


def tests_of_tensors_and_numbers(jit):
    @jit
    def either(x, n):
        k = 0
        while n > 0 or k < 2:
            k += 1
            n = n - 1
        while not (n >= 2 or k <= 0):
            k -= 1
            n = n + 1
        return x, n, k

    @jit
    def counted(x, n):
        k, e = 0, 1.0
        while k < n:
            k += 1
        while e * n > 0.3:
            e = e / 2
            x = x + e
        return x * k, k, e

    counts = (0, 1, 5, 0, 3)
    return [f(tj.ones(3), tj.tensor(k)) for f in (either, counted) for k in counts]


PROGRAMS = programs_in(globals())
