"""Programs whose loops carry numbers that become tensors, and variables of one iteration.

Each runs several lengths, 0 and 1 among them, and shows results, gradients and types.
"""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import (
    LOOPS,
    data,
    results,
    results_and_gradients,
    tried,
    weights,
)
from tests.capture.program_list import programs_in


def float_becomes_a_tensor(jit):
    w = weights()

    @jit
    def f(x):
        total = 0.0
        for row in x:
            total = total + (row @ w).sum()
        return total

    return [*results_and_gradients(f), w.grad]


def float_updated_in_place(jit):
    @jit
    def f(x):
        total = 0.1
        for row in x:
            total *= 3
            total += row.sum()
        return total

    return results_and_gradients(f)


def int_becomes_a_tensor(jit):
    @jit
    def f(x):
        total, count = 0, 0
        for row in x:
            total = total + row.sum()
            count = count + (row > 0).sum()
        return total, count

    return results(f)


def float_in_a_float64_body(jit):
    @jit
    def f(x):
        total = 1
        for row in x:
            total = total * 0.5 + row.double().sum()
        return total

    return results_and_gradients(f)


def float_that_takes_a_shape(jit):
    @jit
    def f(x):
        total = 0.0
        for k in range(x.shape[0]):
            total = total + x[k] * k
        return total

    return results_and_gradients(f)


def float_and_int_tensor(jit):
    @jit
    def f(x):
        total = 0.5
        for row in x:
            total = total + (row > 0).sum()
        return total

    return results(f)


def two_numbers_of_one_object(jit):
    @jit
    def f(x):
        low = high = 0.0
        for row in x:
            low, high = low - row.min(), high + row.max()
        return low, high

    return results(f)


def none_becomes_a_tensor(jit):
    @jit
    def f(x):
        best = None
        for row in x:
            best = row * 1 if best is None else tj.maximum(best, row)
        return best

    return results_and_gradients(f)


def other_dtype_at_the_next_call(jit):
    @jit
    def f(x):
        total = 0.0
        for row in x:
            total = total + row.sum()
        return total

    out = []
    for dtype in (tj.float32, tj.float64, tj.int64, tj.bfloat16, tj.float32):
        out += [f(data(n).to(dtype)) for n in (20, 0, 17)]
    with tj.no_grad():
        out.append(f(data(20).requires_grad_()))
    return [*out, f(data(20).requires_grad_())]


def start_from_an_argument(jit):
    @jit
    def f(x, total):
        for row in x:
            total = total + row.sum()
        return total

    starts = (0.0, 1.5, 2, 0.0, -0.0, True, tj.tensor(2.0))
    return [f(data(n), start) for start in starts for n in (20, 0)]


def in_an_outer_loop(jit):
    @jit
    def f(x):
        total = 0.0
        for row in x:
            inner = 0.0
            for value in row:
                inner = inner + value * value
            total = total + inner.sqrt()
        return total

    out = []
    for rows, columns in ((20, 20), (20, 3), (3, 20), (1, 20)):
        x = data(rows, columns).requires_grad_()
        y = f(x)
        y.backward()
        out += [y, x.grad]
    return out


def left_by_a_break(jit):
    @jit
    def f(x, most):
        total = 0.0
        for row in x:
            total = total + row.abs().sum()
            if total > most:
                break
        return total

    return [f(data(n), most) for n in LOOPS for most in (0.5, 7.0, 1e9)]


def in_a_while(jit):
    @jit
    def f(x):
        total, k = 0.0, tj.zeros(())
        while k < x.shape[0]:
            total = total + x.sum() * k
            k = k + 1
        return total

    return results(f)


def read_behind_the_loop(jit):
    """The row, the index and a value of the last iteration are read behind it."""
    @jit
    def f(x):
        total = 0.0
        for k, row in enumerate(x):  # noqa: B007
            double = row * 2
            total = total + double.sum()
        return total, k, double, row * 1

    return [tried(f, data(n)) for n in (20, 1, 33, 0)]


def read_by_a_later_loop(jit):
    @jit
    def f(x):
        total, last = 0.0, x.sum(0)
        for row in x:
            other = row + last
            total = total + other.sum()
        for row in x:
            total = total + (other * row).sum()
            last = other + 1
        return total, last

    return [tried(f, data(n)) for n in (20, 33, 1, 0)]


def read_before_it_is_bound_again(jit):
    """A variable of the iteration before, which a branch on the index binds."""
    @jit
    def f(x):
        total, before = 0.0, x.sum(0)
        for row in x:
            total = total + (before * row).sum()
            before = row * 2
        return total

    return results_and_gradients(f)


def read_by_a_closure(jit):
    @jit
    def f(x):
        total, row = 0.0, x.sum(0)

        def doubled():
            return row * 2

        for row in x:
            total = total + row.sum()
        return total, doubled()

    return [f(data(n)) for n in (20, 33, 1, 0)]


def read_after_an_error(jit):
    @jit
    def f(x):
        total = 0.0
        kept = x.sum(0)
        try:
            for row in x:
                kept = row + 1
                total = total + kept.sum()
            total.reshape(7)
        except Exception:
            return total, kept
        return total

    return [f(data(n)) for n in (20, 33, 1, 0)]


def deleted_in_the_body(jit):
    @jit
    def f(x):
        total, other = 0.0, x.sum(0)
        for row in x:
            other = row * 2
            total = total + other.sum()
            del other
        return total

    return [tried(f, data(n)) for n in (20, 33, 1, 0)]


def in_the_else_of_a_loop(jit):
    @jit
    def f(x, most):
        total = 0.0
        for row in x:
            last = row * 2
            total = total + last.sum()
            if total > most:
                break
        else:
            total = total + last.max()
        return total

    return [tried(f, data(n), most) for n in (20, 33, 1, 0) for most in (1.0, 1e9)]


def negative_zero(jit):
    @jit
    def f(x):
        total = -0.0
        for row in x:
            total = total + row.sum() * 0
        return total

    return [f(-tj.ones(n, 2)) for n in (20, 0, 1)]


PROGRAMS = programs_in(globals())
