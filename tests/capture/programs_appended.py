"""Programs whose loops append parts of what they carry, and whose lists are then read and written.

A part is a view of the variable's tensor: a write to one is seen in the other.
"""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import LOOPS, data, results, results_and_gradients, weights
from tests.capture.program_list import programs_in


def element_of_a_product(jit):
    turn = weights()

    @jit
    def f(x):
        M, out = tj.eye(3), []
        for row in x:
            M = (M * row) @ turn
            out.append(M[0, 1])
        return tj.stack(out) if len(out) else M

    return [*results_and_gradients(f), turn.grad]


def row_before_the_update(jit):
    turn = weights()

    @jit
    def f(x):
        M, out = tj.eye(3), []
        for row in x:
            out.append(M[0])
            M = (M * row) @ turn
        return tj.stack(out) if len(out) else M

    return [*results_and_gradients(f), turn.grad]


def state_before_the_update(jit):
    @jit
    def f(x):
        h, out = x.sum(0), []
        start = h
        for row in x:
            out.append(h)
            h = h * 0.5 + row
        return out, h, len(out) and out[0] is start

    return results(f)


def two_rows_of_a_state(jit):
    @jit
    def f(x):
        s, first, second = tj.ones(2, 3), [], []
        for row in x:
            s = s * 0.9 + row
            first.append(s[0])
            second.append(s[1])
        return first, second, s

    return results(f)


def rows_that_overlap(jit):
    @jit
    def f(x):
        s, first, both = tj.ones(2, 3), [], []
        for row in x:
            s = s * 0.9 + row
            first.append(s[0])
            both.append(s[:2])
        if len(first):
            first[0][1] = 7.0
        return first, both

    return results(f)


def variable_written_behind_the_loop(jit):
    @jit
    def f(x):
        M, out = tj.ones(2, 3), []
        for row in x:
            M = M * 0.5 + row
            out.append(M[1])
        M[1, 0] = 5.0
        M += 1
        return tj.stack(out) if len(out) else 0, out, M

    return results(f)


def start_written_behind_the_loop(jit):
    @jit
    def f(x, start):
        M, out = start, []
        for row in x:
            out.append(M[1])
            M = M * 0.5 + row
        start[1, 0] = 5.0
        return tj.stack(out) if len(out) else 0, out, M

    starts = [tj.ones(2, 3) for _ in LOOPS]
    out = [f(data(length), start) for length, start in zip(LOOPS, starts)]
    return out, starts


def elements_written_behind_the_loop(jit):
    @jit
    def f(x):
        M, out = tj.ones(2, 3), []
        for row in x:
            M = M * 0.5 + row
            out.append(M[1])
        for k in range(len(out)):
            out[k][0] = k
        return M, out

    return results(f)


def first_element_written_behind_the_loop(jit):
    @jit
    def f(x):
        start = tj.ones(2, 3)
        M, out = start, []
        for row in x:
            out.append(M[0])
            M = M * 0.5 + row
        if len(out):
            out[0].mul_(3)
            out[-1].mul_(3)
        return start, M, out

    return results(f)


def state_written_in_place(jit):
    """Each element is a view of one tensor that all iterations write."""
    @jit
    def f(x):
        M, out = tj.ones(2, 3), []
        for row in x:
            M.mul_(0.5).add_(row)
            out.append(M[0])
        return out, M

    return results(f)


def state_written_after_the_append(jit):
    @jit
    def f(x):
        M, out = tj.ones(2, 3), []
        for row in x:
            M = M * 0.5 + row
            out.append(M[0])
            M[0, 0] = 1.0
        return out, M

    return results(f)


def state_that_never_changes(jit):
    @jit
    def f(x):
        M, total, out = x.sum(0), 0.0, []
        for row in x:
            out.append(M[0])
            total = total + row.sum()
        M[0] = 4.0
        return out, total

    return results(f)


def state_handed_on(jit):
    """`before` is what `h` was an iteration ago, so that it is an element's tensor."""
    @jit
    def f(x):
        h = before = x.sum(0) + 1
        out, rows = [], []
        for row in x:
            before, h = h, h * 0.5 + row
            out.append(h)
            rows.append(before[0])
        before[0] = 9.0
        return out, rows, before, h

    return results(f)


def state_handed_on_whole(jit):
    @jit
    def f(x):
        h = before = x.sum(0) + 1
        out = []
        for row in x:
            before, h = h, h * 0.5 + row
            out.append(h)
        before[0] = 9.0
        return out, before, h

    return results(f)


def states_handed_on_twice(jit):
    @jit
    def f(x):
        a, b, c = x.sum(0) + 1, x.sum(0) + 2, x.sum(0) + 3
        out = []
        for row in x:
            a, b, c = b, c, a * 0.5 + row
            out.append(c)
        a += 1
        b[0] = 7.0
        total = tj.stack(out).sum() if len(out) else 0
        c *= 2
        return out, total, a, b, c

    return results(f)


def state_handed_on_and_stacked(jit):
    @jit
    def f(x):
        h = before = x.sum(0) + 1
        out = []
        for row in x:
            before, h = h, h * 0.5 + row
            out.append(h)
        return (tj.stack(out) * before).sum() if len(out) else h

    return results_and_gradients(f)


def part_of_a_state_handed_on(jit):
    @jit
    def f(x):
        h, before, out = x.sum(0) + 1, x[:1].sum(0)[1:], []
        for row in x:
            before, h = h[1:], h * 0.5 + row
            out.append(h)
        before[0] = 9.0
        return out, before, h

    return results(f)


def new_and_old_of_one_variable(jit):
    @jit
    def f(x):
        h, old, new = x.sum(0) + 1, [], []
        for row in x:
            old.append(h[0])
            h = h * 0.5 + row
            new.append(h[0])
        for k in range(len(new)):
            new[k].mul_(2)
        return old, new, h

    return results(f)


def two_names_for_the_start(jit):
    @jit
    def f(x):
        a = b = x.sum(0) + 1
        out = []
        for row in x:
            out.append(a[0])
            a = a + row
            b = b * row
        return out, a, b

    return results(f)


def start_that_another_variable_holds(jit):
    @jit
    def f(x):
        a = x.sum(0) + 1
        kept, out = a, []
        for row in x:
            out.append(a[0])
            a = a + row * kept
        kept[0] = 3.0
        return out, a, kept

    return results(f)


def transposed_state(jit):
    @jit
    def f(x):
        M, out = tj.eye(3), []
        for row in x:
            M = (M * row).T
            out.append(M[:, 0])
        return out, M

    return results(f)


def column_of_a_state(jit):
    @jit
    def f(x):
        M, out = tj.eye(3), []
        for row in x:
            M = M * row + 1
            out.append(M[:, 0])
        return out, tj.stack(out) if len(out) else 0

    return results(f)


def detached_part(jit):
    @jit
    def f(x):
        h, out = x.sum(0), []
        for row in x:
            h = h * 0.5 + row
            out.append(h[0].detach())
        return tj.stack(out).sum() + h.sum() if len(out) else h

    return results_and_gradients(f)


def part_without_gradients(jit):
    @jit
    def f(x):
        h, out = x.sum(0), []
        for row in x:
            h = h * 0.5 + row
            with tj.no_grad():
                out.append(h[0])
        return tj.stack(out).sum() + h.sum() if len(out) else h

    return results_and_gradients(f)


def gradient_of_some_elements(jit):
    turn = weights()

    @jit
    def f(x):
        M, out = tj.eye(3), []
        for row in x:
            out.append(M[1])
            M = (M * row) @ turn
        return out[0].sum() + out[-1].sum() * 2 + M[0, 0] if len(out) else M.sum()

    return [*results_and_gradients(f), turn.grad]


def part_of_a_tuple(jit):
    @jit
    def f(x):
        state, out = (x.sum(0), tj.zeros(3)), []
        for row in x:
            p, v = state
            v = v - 0.1 * p + row
            state = (p + 0.1 * v, v)
            out.append(state[0][1])
        return tj.stack(out).sum() if len(out) else 0, state, out

    return results(f)


def reshaped_state(jit):
    @jit
    def f(x):
        M, out = tj.eye(3), []
        for row in x:
            M = M * row + 1
            out.append(M.view(9))
        if len(out):
            out[-1][0] = 2.0
        return out, M

    return results(f)


def part_of_a_tensor_of_the_iteration(jit):
    @jit
    def f(x):
        h, out, more = x.sum(0), [], []
        for row in x:
            both = tj.stack([h, row])
            h = both.sum(0)
            out.append(both[0])
            more.append(both[1, 1:])
        return out, more, h

    return results(f)


def row_of_the_input(jit):
    """Elements are views of the caller's tensor."""
    @jit
    def f(x):
        total, out = 0.0, []
        for row in x:
            out.append(row[0])
            total = total + row.sum()
        return out, total

    inputs = [data(n) for n in LOOPS]
    out = [f(x) for x in inputs]
    for found, _ in out:
        for element in found:
            element.fill_(0.25)
    return out, inputs


PROGRAMS = programs_in(globals())
