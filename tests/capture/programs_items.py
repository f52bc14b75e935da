"""Programs whose loops assign items of lists and dicts from before the loop.

Each shows what the lists and dicts hold after the call, and which objects they are.
"""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import (
    LOOPS,
    Box,
    data,
    results,
    results_and_gradients,
    results_and_states,
    tried,
    weights,
)
from tests.capture.program_list import programs_in


def items_of_a_list(jit):
    w = weights()

    @jit
    def f(x):
        s = [x.sum(0) * 0, x.sum(0) * 0 + 1]
        for row in x:
            s[0] = s[0] * 0.5 + row @ w
            s[1] = s[1] - s[0]
        return s[0] + s[1]

    return [*results_and_gradients(f), w.grad]


def items_of_a_dict(jit):
    @jit
    def f(x):
        d = {"h": x.sum(0), "c": x.sum(0) * 2}
        for row in x:
            d["h"] += row
            d["c"] = d["c"] * 0.5 + d["h"]
        return d["h"] * d["c"]

    return results_and_gradients(f)


def items_of_the_callers_list(jit):
    @jit
    def f(x, s):
        for row in x:
            s[0] = s[0] * 0.5 + row
            s[-1] = s[-1] + s[0]
        return s[0].sum()

    out = []
    for length in LOOPS:
        s = [tj.ones(3), tj.zeros(3), tj.zeros(3)]
        kept, untouched = s, s[1]
        out += [f(data(length), s), s, kept is s, s[1] is untouched]
    return out


def list_of_two_names(jit):
    @jit
    def f(x, s, t):
        for row in x:
            s[0] = s[0] * 0.5 + row
            t[0] = t[0] + s[0]
        return s[0] + t[0]

    out = []
    for length in LOOPS:
        s, t = [tj.ones(3)], [tj.zeros(3)]
        out += [f(data(length), s, t), s, t]
        out += [f(data(length), s, s), s]
        out += [f(data(length), s, t), s, t]
    return out


def list_in_an_attribute(jit):
    class Cell(Box):
        def step(self, row):
            self.h[0] = self.h[0] * 0.5 + row
            self.h[1] = self.h[1] + self.h[0]

    @jit
    def f(x, cell):
        for row in x:
            cell.step(row)
        return cell.h[1]

    out = []
    cell = Cell(h=[tj.ones(3), tj.zeros(3)])
    same = cell.h
    for length in LOOPS:
        out += [f(data(length), cell), cell.h, cell.h is same]
    return out


def lists_in_lists(jit):
    @jit
    def f(x):
        s = [[x.sum(0), x.sum(0) * 0], {"k": [x.sum(0)]}]
        inner = s[0]
        for row in x:
            s[0][1] = inner[0] * 0.5 + row
            inner[0] = s[0][1] + inner[0]
            s[1]["k"][0] = s[1]["k"][0] * 0.9 + inner[0]
        return s[0][0] + inner[1] + s[1]["k"][0]

    return results_and_gradients(f)


def key_that_varies(jit):
    @jit
    def f(x, s):
        for k in range(len(x)):
            s[k % 3] = s[k % 3] + x[k]
        return s[0]

    return results_and_states(f, lambda: [tj.ones(3), tj.zeros(3), tj.zeros(3)])


def key_by_the_index(jit):
    @jit
    def f(x):
        s = [x[:1].sum(0) for _ in range(40)]
        for k in range(x.shape[0]):
            s[k] = s[k - 1] + x[k]
        return s

    return results(f)


def key_that_is_counted(jit):
    @jit
    def f(x):
        s, k = [x[:1].sum(0) for _ in range(40)], 0
        for row in x:
            s[k] = row + k
            k += 1
        return s

    return results(f)


def key_that_comes_later(jit):
    @jit
    def f(x, d):
        for row in x:
            d["last"] = row * 2
            d["sum"] = d["sum"] + row
        return d["sum"]

    out = []
    for length in LOOPS:
        d = {"sum": tj.zeros(3)}
        out += [f(data(length), d), d, list(d)]
    return out


def key_that_is_missing(jit):
    @jit
    def f(x):
        s = [x.sum(0)]
        for row in x:
            s[1] = row
        return s

    return results(f)


def item_deleted(jit):
    @jit
    def f(x):
        d = {"a": x.sum(0), "b": x.sum(0)}
        for row in x:
            d["a"] = d["a"] + row
            if "b" in d:
                del d["b"]
        return d

    return results(f)


def list_resized(jit):
    @jit
    def f(x):
        s = [x.sum(0)]
        for row in x:
            s[0] = s[0] + row
            s += [row * 2]
        return s

    return results(f)


def list_replaced_in_the_body(jit):
    @jit
    def f(x):
        s = [x.sum(0), x.sum(0) * 2]
        first = s
        for row in x:
            s[0] = s[0] + row
            s = [v * 0.5 for v in s]
        return s, first

    return results(f)


def items_exchanged(jit):
    @jit
    def f(x):
        s = [x.sum(0), x.sum(0) * 2, x.sum(0) * 3]
        for row in x:
            s[0], s[1], s[2] = s[1], s[2], s[0] * 0.5 + row
        return s

    return results(f)


def one_tensor_at_two_keys(jit):
    @jit
    def f(x, z):
        s = [z, z]
        for row in x:
            s[0] = s[0] + row
        return s, s[1] is z

    return results(f, tj.zeros(3))


def numbers_in_a_list(jit):
    @jit
    def f(x, s):
        total = x.sum(0)
        for row in x:
            s[0] = s[0] + 1
            s[1] = s[1] * 0.5
            total = total + row * s[1] + s[0]
        return total

    out = []
    for length in LOOPS:
        s = [0, 8.0, "name"]
        out += [f(data(length), s), s]
        out += [f(data(length), s), s]
    return out


def number_becomes_a_tensor(jit):
    @jit
    def f(x, s):
        for row in x:
            s["total"] = s["total"] + row.sum()
            s["n"] += 1
        return s["total"]

    return results_and_states(f, lambda: {"total": 0.0, "n": 0})


def tuples_in_a_list(jit):
    @jit
    def f(x):
        s = [(x.sum(0), x.sum(0) * 2)]
        for row in x:
            p, v = s[0]
            s[0] = (p + v * 0.1, v - p * 0.1 + row)
        return s[0][0] * s[0][1]

    return results_and_gradients(f)


def item_written_in_place(jit):
    @jit
    def f(x, s):
        for row in x:
            s[0].mul_(0.5).add_(row)
            s[1] = s[1] + s[0]
        return s[1]

    out = []
    for length in LOOPS:
        s = [tj.ones(3), tj.zeros(3)]
        first = s[0]
        out += [f(data(length), s), s, first, s[0] is first]
    return out


def item_also_in_a_variable(jit):
    @jit
    def f(x):
        h = x.sum(0)
        s = [h]
        for row in x:
            s[0] = s[0] + h * row
            h = s[0] * 0.5
        return h, s[0], h is s[0]

    return results(f)


def item_that_a_variable_gets(jit):
    @jit
    def f(x):
        h = x.sum(0)
        s = [h]
        for row in x:
            h = s[0] * 0.5 + row
            s[0] = h
        s[0][0] = 7.0
        return h, s, h is s[0]

    return results(f)


def items_in_nested_loops(jit):
    @jit
    def f(x, s):
        for row in x:
            for value in row:
                s[0] = s[0] + value
            s[1] = s[1] + s[0]
        return s[1]

    out = []
    for shape in ((20, 20), (2, 20), (20, 2), (1, 33), (33, 1)):
        s = [tj.zeros(()), tj.zeros(())]
        x = data(*shape).requires_grad_()
        y = f(x, s)
        y.backward()
        out += [y, s, x.grad]
    return out


def items_in_a_while(jit):
    @jit
    def f(x, s):
        while s[0].sum() < 9:
            s[0] = s[0] + x.abs().sum(0)
            s[1] = s[0] * 2
        return s[1]

    out = []
    for start in (0.0, 100.0, 5.0):
        s = [tj.ones(3) * start, tj.zeros(3)]
        first, second = s
        out += [f(data(20), s), s, s[0] is first, s[1] is second]
    return out


def items_until_a_break(jit):
    @jit
    def f(x, s, most):
        for row in x:
            s[0] = s[0] + row.abs().sum()
            if s[0] > most:
                break
            s[1] = s[1] + 1
        return s[1]

    out = []
    for length in LOOPS:
        for most in (0.1, 9.0, 1e9):
            s = [tj.zeros(()), tj.zeros(())]
            out += [f(data(length), s, most), s]
    return out


def item_under_a_condition(jit):
    @jit
    def f(x, s):
        total = x.sum()
        for row in x:
            if row.sum() > 0:
                s[0] = s[0] + row
            total = total + s[0].sum()
        return total

    return results_and_states(f, lambda: [tj.zeros(3)])


def item_written_in_a_called_function(jit):
    def step(state, row):
        state["h"] = state["h"] * 0.5 + row
        state["n"] = state["n"] + 1

    @jit
    def f(x, state):
        for row in x:
            step(state, row)
        return state["h"]

    out = []
    state = {"h": tj.zeros(3), "n": tj.zeros(())}
    for length in LOOPS:
        out += [f(data(length), state), dict(state)]
    return out


def whole_list_read_in_the_body(jit):
    @jit
    def f(x):
        s = [x.sum(0), x.sum(0) * 2, x.sum(0) * 3]
        for row in x:
            s[1] = sum(s) * 0.3 + row
            s[0] = tj.stack(s).mean(0)
        return tj.stack(s).sum(0) + len(s)

    return results_and_gradients(f)


def list_of_a_global(jit):
    @jit
    def f(x):
        for row in x:
            GLOBAL[0] = GLOBAL[0] * 0.5 + row
        return GLOBAL[0]

    GLOBAL[0] = tj.zeros(3)
    out = []
    for length in LOOPS:
        out += [f(data(length)), list(GLOBAL)]
        GLOBAL[0] = GLOBAL[0] + 1
    return out


GLOBAL = [None]


def other_contents_at_the_next_call(jit):
    @jit
    def f(x, s):
        for row in x:
            s[0] = s[0] + row
        return s[0]

    starts = [tj.zeros(3), tj.zeros(3, dtype=tj.float64), 0.0, tj.zeros(1), 1, tj.zeros(3),
              tj.zeros(3, requires_grad=True)]
    out = []
    for start in starts:
        for length in (20, 0):
            for s in ([start], [start, start], [start, None]):
                out += [tried(f, data(length), s), s]
    with tj.no_grad():
        s = [tj.zeros(3, requires_grad=True)]
        out += [f(data(20), s), s]
    return out


def many_items_that_come_to_require_grad(jit):
    w = weights()

    @jit
    def f(x):
        s, n = [tj.zeros(()) for _ in range(20)], [0.5 * k for k in range(20)]
        for row in x:
            for k in range(12):
                s[k] = s[k] * 0.5 + (row @ w)[k % 3] * n[k]
                n[k] = n[k] * 0.9
        return tj.stack(s).sum() + n[3]

    return [*results_and_gradients(f), w.grad]


def error_in_the_body(jit):
    @jit
    def f(x, s):
        for row in x:
            s[0] = s[0] + row
            s[1] = tj.stack([s[0], row[:2]])
        return s[0]

    return results_and_states(f, lambda: [tj.zeros(3), 1])


def error_for_some_values(jit):
    @jit
    def f(x, s):
        for row in x:
            s[0] = s[0] + row
            assert s[0].sum() < 4
            s[1] = s[0] * 2
        return s[0]

    out = []
    for length in LOOPS:
        s = [tj.zeros(3), tj.zeros(3)]
        out += [type(tried(f, data(length), s)).__name__, s]
    return out


def list_in_two_places(jit):
    @jit
    def f(x, s, box):
        for row in x:
            s[0] = s[0] * 0.5 + row
            box["t"][0][1] = box["t"][0][0] + row
        return s[0]

    out = []
    for length in LOOPS:
        s = [tj.zeros(3), tj.ones(3)]
        box = {"t": (s, s)}
        out += [f(data(length), s, box), s, box["t"][1] is s]
        box = {"t": ([tj.ones(3), 2.0], s)}
        out += [f(data(length), s, box), s, box]
    return out


def branch_that_reads_items(jit):
    @jit
    def f(x):
        s = [x.sum(0), x.sum(0) * 0]
        for row in x:
            if s[0].sum() > 0:
                new = s[1] * 0.5 + row
            else:
                new = s[0] - row
            s[0], s[1] = new, s[0]
        return s[0] + s[1]

    return results(f)


def gradient_within(jit):
    @jit
    def f(w, x):
        state = {"w": w, "m": w * 0}
        for row in x:
            loss = ((state["w"] * row - 1) ** 2).sum()
            (grad,) = tj.autograd.grad(loss, state["w"])
            state["m"] = (state["m"] * 0.9 + grad).detach()
            state["w"] = (state["w"] - 0.1 * state["m"]).detach().requires_grad_()
        return state["w"], state["m"]

    return [tried(f, tj.ones(3, requires_grad=True), data(length)) for length in LOOPS]


PROGRAMS = programs_in(globals())
