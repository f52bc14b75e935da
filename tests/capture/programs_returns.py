"""Programs that leave loops: `return` and `break` that a tensor decides, nested and in branches.

Each calls its function with inputs that leave the loop at every point, and not at all, and shows
results, gradients and what the caller's tensors hold.
"""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import LENGTHS, MANY, data, over_lengths, tried, weights
from tests.capture.program_list import programs_in

LIMITS = (0.1, 3.0, 6.0, 1000.0)


def over_limits(f, lengths=(MANY, 3)):
    """Results and gradients where the loop is left early, late and at its end."""
    out = []
    for length in lengths:
        for limit in LIMITS:
            x = data(length).requires_grad_()
            y = f(x, tj.tensor(limit))
            first = y[0] if isinstance(y, tuple) else y
            if first.requires_grad:
                first.sum().backward()
            out += [y, x.grad]
    return out


def return_or_run_on(jit):
    @jit
    def f(x, limit):
        total = tj.zeros(())
        for t in range(x.shape[0]):
            total = total + x[t].abs().sum()
            if total > limit:
                return total * 2
        return total - 1

    return over_limits(f)


def return_of_each_row(jit):
    @jit
    def f(x, limit):
        total = tj.zeros(())
        for row in x:
            y = row.abs().sum()
            total = total + y
            if total > limit:
                return total * y
        total = total * 3
        return total

    return over_limits(f)


def return_of_several_values(jit):
    @jit
    def f(x, limit):
        total = tj.zeros(3)
        for t in range(x.shape[0]):
            total = total + x[t]
            if total.abs().sum() > limit:
                return total * 2, {"row": x[t] * 1, "all": [total.sum()]}
        return total, {"row": x[0] * 1, "all": [total.mean()]}

    return over_limits(f)


def return_of_where_it_was(jit):
    @jit
    def f(x, limit):
        total = tj.zeros(())
        for t in range(x.shape[0]):
            total = total + x[t].abs().sum()
            if total > limit:
                return total, t, t * 2 + 1
        return total, -1, 0

    return over_limits(f)


def return_of_nothing_else(jit):
    @jit
    def f(x, limit):
        for t in range(x.shape[0]):
            if x[t].abs().sum() > limit:
                return x[t] * 2

    return over_limits(lambda x, limit: f(x, limit) if limit < 1 else tj.zeros(()), (MANY,))


def return_inside_a_branch(jit):
    @jit
    def f(x, limit):
        total = tj.zeros(())
        for t in range(x.shape[0]):
            if x[t].sum() > 0:
                total = total + x[t].sum()
                if total > limit:
                    return total * 5
                total = total + 0.5
            else:
                total = total - 0.25
            total = total * 1.01
        return total

    return over_limits(f)


def two_returns_and_a_break(jit):
    @jit
    def f(x, limit):
        total = tj.zeros(())
        for t in range(x.shape[0]):
            total = total + x[t].abs().sum()
            if total > limit * 2:
                return total * 2
            if x[t][0] > 1.2:
                break
            if total > limit:
                return total * 3
        else:
            total = total - 100
        return total

    return over_limits(f)


def break_of_a_while_that_a_number_tests(jit):
    @jit
    def f(x, limit):
        total, n = tj.zeros(()), 0
        while n < 3:
            total = total + x[n].abs().sum()
            n += 1
            if total > limit:
                break
        else:
            total = total - 100
        return total, n

    return over_limits(f)


def return_from_a_loop_in_a_loop(jit):
    @jit
    def f(x, limit):
        total = tj.zeros(())
        for i in range(x.shape[0]):
            row = x[i]
            for j in range(x.shape[1]):
                total = total + row[j].abs()
                if total > limit:
                    return total * 2
            total = total + 0.125
        return total - 3

    return [f(data(n, 20), tj.tensor(limit)) for n in (3, 20) for limit in (0.1, 20.0, 1e4)]


def break_from_a_loop_in_a_loop(jit):
    @jit
    def f(x, limit):
        total, left = tj.zeros(()), 0
        for i in range(x.shape[0]):
            part = tj.zeros(())
            for j in range(x.shape[1]):
                part = part + x[i, j].abs()
                if part > limit:
                    left += 1
                    break
            else:
                part = part * 10
            total = total + part
        return total, left

    return [f(data(n, 20), tj.tensor(limit)) for n in (3, 20) for limit in (0.1, 9.0, 1e4)]


def return_from_while(jit):
    @jit
    def f(a, limit):
        y = a
        while y < 50:
            y = y * 1.5 + 1
            if y * y > limit:
                return y * 0.5
        return y + 7

    out = []
    for value in (2.0, 9.0, 60.0):
        for limit in (10.0, 300.0, 1e6):
            a = tj.tensor(value, requires_grad=True)
            y = f(a, tj.tensor(limit))
            y.backward()
            out += [y, a.grad]
    return out


def return_from_while_true(jit):
    @jit
    def f(a, tolerance):
        y = a
        while True:
            y = 0.5 * (y + a / y)
            if (y * y - a).abs() < tolerance:
                return y

    out = []
    for value in (2.0, 9.0, 1.0, 1e4):
        a = tj.tensor(value, requires_grad=True)
        y = f(a, tj.tensor(1e-3))
        y.backward()
        out += [y, a.grad]
    return out


def return_with_a_count_from_while_true(jit):
    @jit
    def f(a, tolerance):
        y, steps = a, 0
        while True:
            y = 0.5 * (y + a / y)
            steps += 1
            if (y * y - a).abs() < tolerance or steps >= 7:
                return y, steps

    return [f(tj.tensor(v), tj.tensor(1e-3)) for v in (2.0, 9.0, 1.0, 1e4, 1e9)]


def return_of_the_argument_from_a_loop(jit):
    @jit
    def f(x, limit):
        total = tj.zeros(3)
        for t in range(x.shape[0]):
            total = total + x[t]
            if total.abs().sum() > limit:
                return x
        return x

    out = []
    for limit in LIMITS:
        x = data(MANY)
        y = f(x, tj.tensor(limit))
        y.add_(1)
        out += [x, y]
    return out


def return_of_one_of_two_arguments(jit):
    @jit
    def f(x, z, limit):
        total = tj.zeros(3)
        for t in range(x.shape[0]):
            total = total + x[t]
            if total.abs().sum() > limit:
                return z
        return x

    out = []
    for limit in LIMITS:
        x, z = data(MANY), data(MANY) * 2
        y = f(x, z, tj.tensor(limit))
        y.add_(1)
        out += [x, z, y]
    return out


def return_of_what_may_be_the_argument(jit):
    @jit
    def f(h, x, limit):
        for t in range(x.shape[0]):
            if (h * x[t]).abs().sum() > limit:
                return h
            h = h + x[t]
        return h

    out = []
    for limit in LIMITS:
        h = tj.ones(3)
        y = f(h, data(MANY), tj.tensor(limit))
        y.add_(1)
        out += [h, y]
    return out


def return_of_a_row(jit):
    @jit
    def f(x, limit):
        for t in range(x.shape[0]):
            if x[t].abs().sum() > limit:
                return x[t]
        return x[0]

    out = []
    for limit in LIMITS:
        x = data(MANY)
        y = f(x, tj.tensor(limit))
        y.add_(1)
        out += [x, y]
    return out


def return_with_weights(jit):
    w = weights()

    @jit
    def f(x, limit):
        h = tj.zeros(3)
        for t in range(x.shape[0]):
            h = tj.tanh(x[t] + h @ w)
            if h.abs().sum() > limit:
                return h * 2
        return h

    out = []
    for limit in (0.5, 1.8, 5.0):
        w.grad = None
        x = data(MANY).requires_grad_()
        y = f(x, tj.tensor(limit))
        y.sum().backward()
        out += [y, x.grad, w.grad]
    return out


def return_before_the_weights_are_used(jit):
    w = weights()

    @jit
    def f(x, limit):
        h = tj.zeros(3)
        for t in range(x.shape[0]):
            if (h + x[t]).abs().sum() > limit:
                return h + x[t]
            h = tj.tanh(x[t] + h @ w)
        return h

    out = []
    for limit in (0.1, 1.5, 5.0):
        w.grad = None
        x = data(MANY).requires_grad_()
        y = f(x, tj.tensor(limit))
        y.sum().backward()
        out += [y, x.grad, w.grad]
    return out


def return_within_no_grad(jit):
    @jit
    def f(x, limit):
        total = tj.zeros(())
        for t in range(x.shape[0]):
            with tj.no_grad():
                if total > limit:
                    return total * 2
            total = total + x[t].abs().sum()
        return total

    return over_limits(f)


def break_within_no_grad(jit):
    @jit
    def f(x, limit):
        total, after = tj.zeros(()), tj.zeros(())
        for t in range(x.shape[0]):
            with tj.no_grad():
                if total > limit:
                    break
                total = total + x[t].abs().sum()
            after = after + 1
        return total, after

    return over_limits(f)


def finally_after_a_return(jit):
    seen = []

    @jit
    def f(x, limit):
        total = tj.zeros(())
        try:
            for t in range(x.shape[0]):
                total = total + x[t].abs().sum()
                if total > limit:
                    return total * 2
                total = total + 1
        finally:
            seen.append(total * 1)
        return total

    return [*over_limits(f), seen]


def raise_in_a_loop_that_returns(jit):
    @jit
    def f(x, limit):
        total = tj.zeros(())
        for t in range(x.shape[0]):
            total = total + x[t].abs().sum()
            if total > limit * 2:
                raise ValueError("too much")
            if total > limit:
                return total * 2
        return total

    return [tried(f, data(n), tj.tensor(limit)) for n in (MANY, 2) for limit in LIMITS]


def assert_after_a_loop_that_returns(jit):
    @jit
    def f(x, limit):
        total = tj.zeros(())
        for t in range(x.shape[0]):
            total = total + x[t].abs().sum()
            if total > limit:
                return total * 2
        assert total < 5, "large"
        return total

    return [tried(f, data(n), tj.tensor(limit)) for n in (MANY, 2) for limit in LIMITS]


def write_before_a_return(jit):
    state = tj.zeros(3)

    @jit
    def f(x, limit):
        for t in range(x.shape[0]):
            state.add_(x[t].abs())
            if state.sum() > limit:
                return state * 2
        return state * 1

    out = []
    for limit in (*LIMITS, 30.0, 2000.0):
        out += [f(data(MANY), tj.tensor(limit)), state * 1, state._version > 0]
    return out


def dropped_name_after_a_break(jit):
    @jit
    def f(x, limit):
        total = tj.zeros(())
        for t in range(x.shape[0]):
            if total > limit:
                break
            y = x[t].abs().sum()
            total = total + y
        try:
            return y + total
        except UnboundLocalError:
            return total

    return [tried(f, data(n), tj.tensor(limit)) for n in (MANY, 1) for limit in (-1.0, *LIMITS)]


def names_of_an_iteration(jit):
    @jit
    def f(x, limit):
        total = tj.zeros(())
        for t in range(x.shape[0]):
            if total > limit:
                break
            y = x[t].abs()
            if y.sum() < 0.5:
                continue
            z = y * 2
            total = total + z.sum()
        return total

    return over_limits(f)


def closure_over_a_loop_that_returns(jit):
    @jit
    def f(x, limit):
        total = tj.zeros(())
        read = lambda: total  # noqa: E731
        for t in range(x.shape[0]):
            total = total + x[t].abs().sum()
            if total > limit:
                return read() * 2
        return read()

    return over_limits(f)


def function_that_returns_from_a_loop(jit):
    def first_above(x, limit):
        for t in range(x.shape[0]):
            if x[t].abs().sum() > limit:
                return x[t] * 2
        return x[0] * 0

    @jit
    def f(x, limit):
        y = first_above(x, limit) + first_above(x * 2, limit)
        if y.sum() > 1:
            return first_above(y.expand(4, 3) * 1, limit)
        return y

    return over_limits(f)


def search_of_a_short_list(jit):
    @jit
    def f(x, limit):
        for scale in (1.0, 2.0, 4.0):
            y = x * scale
            if y.abs().sum() > limit:
                return y
        return x - 1

    return over_limits(f)


def number_and_flag_returned(jit):
    @jit
    def f(x, limit):
        for t in range(x.shape[0]):
            if x[t].abs().sum() > limit:
                return True
        return False

    return [f(data(n), tj.tensor(limit)) for n in LENGTHS for limit in LIMITS]


def two_variables_by_turns(jit):
    @jit
    def f(a, b, limit):
        while True:
            a, b = b + 1, a * 1
            if a.sum() > limit:
                return b
            b = b + 0.5
            if b.sum() > limit:
                return b

    return [f(tj.tensor(v), tj.tensor(-v), tj.tensor(limit))
            for v in (1.0, -3.0) for limit in (-5.0, 2.0, 9.0)]


def rows_of_a_variable(jit):
    @jit
    def written(x):
        h = x * 2
        for i in range(x.shape[0]):
            h = h * 1
            row = h[i]
            row.add_(1)
        return h

    @jit
    def stale(x):
        h, total = x * 2, tj.zeros(())
        for i in range(x.shape[0]):
            h = h * 1
            row = h[i]
            h.add_(1)
            total = total + row.sum()
        return total

    @jit
    def in_a_branch(x, limit):
        h, total = x * 2, tj.zeros(())
        for i in range(x.shape[0]):
            h = h * 1
            if h[i].sum() > limit:
                row = h[i]
                row.mul_(2)
                total = total + h.sum()
        return total, h

    return [[written(data(n)), stale(data(n)), in_a_branch(data(n), tj.tensor(0.5))]
            for n in (MANY, 3)]


def row_chosen_in_a_loop(jit):
    @jit
    def kept(x, limit):
        g = x[0] * 1
        for t in range(x.shape[0]):
            if x[t].sum() > limit:
                g = x[t]
        return g

    @jit
    def looked_at(x, limit):
        h = tj.zeros(3)
        for t in range(x.shape[0]):
            row = x[t]
            if row.sum() > limit:
                row = row * 2
            h = h + row
        return h

    out = []
    for limit in LIMITS:
        x = data(MANY)
        y = kept(x, tj.tensor(limit))
        y.add_(1)
        out += [x, y, looked_at(x, tj.tensor(limit))]
    return out


def history_of_elements(jit):
    w, u = weights(), weights()

    @jit
    def f(x):
        h, before = tj.zeros(3), []
        for t in range(x.shape[0]):
            before.append(h @ u)
            h = tj.tanh(x[t] + h @ w)
        return before[0], before[1], tj.stack(before)

    out = []
    for number in range(3):
        for length in (MANY, 2):
            w.grad, u.grad = None, None
            result = f(data(length))[number]
            result.sum().backward()
            out += [result, w.grad, u.grad]
    return out


def history_after_few_iterations(jit):
    w = weights()

    @jit
    def f(x):
        a, b = tj.zeros(3), tj.zeros(3)
        for t in range(x.shape[0]):
            b = a * 1
            a = x[t] @ w
        return b, a

    out = []
    for length in (MANY, 1, 2, 3):
        w.grad = None
        b, a = f(data(length))
        if b.requires_grad:
            b.sum().backward()
        out += [b, w.grad]
    return out


def history_after_a_break(jit):
    w = weights()

    @jit
    def f(x, limit):
        total, h = tj.zeros(()), x[0] * 1
        for t in range(x.shape[0]):
            total = total + h.sum()
            h = x[t] @ w
            if h.sum() > limit:
                break
        return total, h

    out = []
    for limit in (-100.0, 0.5, 100.0):
        w.grad = None
        total, _ = f(data(MANY), tj.tensor(limit))
        if total.requires_grad:
            total.backward()
        out += [total, w.grad]
    return out


def what_rows_replace_before_a_break(jit):
    """There are rows: what the variable was before them gets no gradient."""

    @jit
    def f(rows, found):
        for row, other in zip(rows, rows * 2):
            found = tj.log(row) * other
            if row.sum() > 3.5:
                break
        return found

    out = []
    for first in (1.0, 0.5, 0.25):
        rows = (tj.arange(1.0, 18.0).view(17, 1) * first).requires_grad_()
        found = tj.ones(1, requires_grad=True)
        f(rows, found).sum().backward()
        out += [rows.grad, found.grad]
    return out


def rows_of_what_may_be_expanded(jit):
    @jit
    def f(x, y):
        k = 0
        while True:
            k += 1
            if k > 2 or x.sum() > 0:
                break
            y = y + 5
        for i, _ in enumerate(x):
            y[i - 1] += y[i - 1] + 1
        return y

    out = []
    for length, sign in ((1, 1), (3, 1), (3, -1), (8, 1)):
        one = tj.ones(1) * 1.5
        out += [tried(f, tj.ones(length) * sign, one.expand(3)), one]
    return out


def break_before_an_append(jit):
    @jit
    def f(x, t, seen):
        for r in t:
            k = 0
            while k < 2 and (x <= -1).any():
                k += 1
            else:
                for _ in range(len(x)):
                    if (x > k).all():
                        break
                if x.sum() > r.sum() > 0:
                    break
            seen.append(t.clone())
        return x

    out = []
    for value in (0.0, 1.0, -2.0, 9.0):
        seen = []
        out += [f(tj.ones(2) * value, tj.arange(8.0).view(4, 2) - 3, seen), seen]
    return out


def returned_in_eval_and_training(jit):
    @jit
    def f(x, limit):
        total = x[0] * 0
        for t in range(x.shape[0]):
            total = total + x[t]
            if total.sum() > limit:
                return total * 2
        return total

    out = []
    for k in range(4):
        x = data(MANY)
        if k % 2:
            x.requires_grad_()
        with tj.set_grad_enabled(k < 2):
            out += [f(x, tj.tensor(2.0))]
    return [*out, *over_lengths(f, LENGTHS, tj.tensor(2.0))]


PROGRAMS = programs_in(globals())
