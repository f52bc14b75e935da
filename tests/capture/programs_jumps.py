"""Programs that loop while a tensor says so, jump out of loops, nest them, or cannot roll them."""

from __future__ import annotations

import contextlib

import tracejit as tj
from tests.capture.program_inputs import LENGTHS, data, over_lengths
from tests.capture.program_list import programs_in
from tracejit import nn


def counter_of_python(jit):
    @jit
    def f(x):
        count, scale = 0, 1.0
        total = tj.zeros(3)
        for t in range(x.shape[0]):
            total = total + x[t] * scale + count
            count += 2
            scale = scale * 0.5
        return total, count, scale

    return [f(data(n)) for n in LENGTHS]


def branch_in_a_loop(jit):
    @jit
    def f(x):
        h = tj.zeros(3)
        for t in range(x.shape[0]):
            if x[t].sum() > 0:
                h = h + x[t]
            else:
                h = h * 0.5
        return h

    return over_lengths(f)


def branch_on_the_index(jit):
    @jit
    def f(x):
        h = tj.zeros(3)
        for t in range(x.shape[0]):
            if t < 2:
                h = h + x[t]
            else:
                h = h - x[t] * t
        return h

    return over_lengths(f)


def continue_in_a_loop(jit):
    @jit
    def f(x):
        h = tj.zeros(3)
        for t in range(x.shape[0]):
            if x[t].sum() < 0:
                continue
            h = h + x[t]
        return h

    return over_lengths(f)


def break_in_a_loop(jit):
    @jit
    def f(x, limit):
        total = tj.zeros(())
        for t in range(x.shape[0]):
            if total > limit:
                break
            total = total + x[t].abs().sum()
        return total * 2

    return over_lengths(f, LENGTHS, tj.tensor(4.0))


def break_keeps_the_index(jit):
    @jit
    def f(x, limit):
        total = tj.zeros(())
        for t in range(x.shape[0]):
            total = total + x[t].abs().sum()
            if total > limit:
                break
        return total * t, t

    return [f(data(n), tj.tensor(4.0)) for n in LENGTHS]


def break_with_else(jit):
    @jit
    def f(x, limit):
        total = tj.zeros(())
        for t in range(x.shape[0]):
            total = total + x[t].abs().sum()
            if total > limit:
                break
        else:
            total = total - 100
        return total

    return [f(data(n), tj.tensor(4.0)) for n in LENGTHS]


def return_in_a_loop(jit):
    @jit
    def f(x, limit):
        total = tj.zeros(())
        for t in range(x.shape[0]):
            total = total + x[t].abs().sum()
            if total > limit:
                return total * 2
        return total

    return [f(data(n), tj.tensor(4.0)) for n in LENGTHS]


def newton(jit):
    @jit
    def f(a):
        y = a
        while (y * y - a).abs() > 1e-4:
            y = 0.5 * (y + a / y)
        return y

    out = []
    for value in (2.0, 9.0, 1.0, 100.0):
        a = tj.tensor(value, requires_grad=True)
        y = f(a)
        y.backward()
        out += [y, a.grad]
    return out


def newton_with_a_counter(jit):
    @jit
    def f(a):
        y, steps = a, 0
        while (y * y - a).abs() > 1e-4 and steps < 5:
            y = 0.5 * (y + a / y)
            steps += 1
        return y, steps, y * steps

    return [f(tj.tensor(value)) for value in (2.0, 9.0, 1.0, 1e6)]


def while_true(jit):
    @jit
    def f(a):
        y = a
        while True:
            y = 0.5 * (y + a / y)
            if (y * y - a).abs() < 1e-4:
                break
        return y

    out = []
    for value in (2.0, 9.0, 1.0, 100.0):
        a = tj.tensor(value, requires_grad=True)
        y = f(a)
        y.backward()
        out += [y, a.grad]
    return out


def while_converged_flag(jit):
    @jit
    def f(a):
        y, done = a, False
        while not done:
            y = 0.5 * (y + a / y)
            done = (y * y - a).abs() < 1e-4
        return y

    return [f(tj.tensor(value)) for value in (2.0, 9.0, 1.0, 100.0)]


def while_with_else(jit):
    @jit
    def f(a):
        while a < 100:
            a = a * 3
        else:
            a = a + 1
        return a

    return [f(tj.tensor(value)) for value in (2.0, 9.0, 1000.0)]


def nested_loops(jit):
    @jit
    def f(x):
        total = tj.zeros(())
        for i in range(x.shape[0]):
            row = x[i]
            for j in range(x.shape[1]):
                total = total + row[j] * (i + 1) - j
        return total

    return over_lengths(f, (3, 20, 1))


def while_in_a_for(jit):
    @jit
    def f(x):
        out = []
        for t in range(x.shape[0]):
            a = x[t].abs().sum() + 1
            y = a
            while (y * y - a).abs() > 1e-3:
                y = 0.5 * (y + a / y)
            out.append(y)
        return tj.stack(out)

    return over_lengths(f)


def loop_in_a_branch(jit):
    @jit
    def f(x):
        h = tj.zeros(3)
        if x.sum() > 0:
            for t in range(x.shape[0]):
                h = h * 0.5 + x[t]
        else:
            for item in x:
                h = h - item
        return h

    return over_lengths(f)


def shape_grows(jit):
    @jit
    def f(x):
        h = x[:1]
        for t in range(x.shape[0]):
            h = tj.cat([h, x[t : t + 1]])
        return h

    return [f(data(n)) for n in (3, 17)]


def dtype_changes(jit):
    @jit
    def f(x):
        n = tj.zeros((), dtype=tj.int64)
        for t in range(x.shape[0]):
            n = n + x[t].sum()
        return n

    return [f(data(n)) for n in (3, 17)]


def effects_in_a_loop(jit):
    seen = []

    @jit
    def f(x):
        h = x[0]
        for t in range(x.shape[0]):
            seen.append(t)
            h = h + x[t]
        return h

    return [f(data(3)), f(data(17)), seen]


def index_into_a_list(jit):
    scales = [1.0, 2.0, 3.0]

    @jit
    def f(x):
        h = x[0]
        for t in range(x.shape[0]):
            h = h * scales[t % 3] + x[t]
        return h

    return [f(data(3)), f(data(17))]


def dropout_in_a_loop(jit):
    @jit
    def f(x):
        h = x[0]
        for t in range(x.shape[0]):
            h = nn.functional.dropout(h, 0.5) + x[t]
        return h

    return [f(data(3)), f(data(17))]


def iterable_is_gone_before_the_rest(jit):
    """A generator that a `break` leaves is closed at once."""

    def items(log):
        try:
            yield from (1.0, 2.0, 3.0)
        finally:
            log.append("closed")

    @jit
    def f(x, log):
        for k in items(log):
            x = x + k
            if k > 10:
                return "never"
            if x.sum() > 3:
                break
        log.append("after")
        return x

    out = []
    for values in ([1.0, 2.0], [-3.0, 1.0], [-30.0, 1.0]):
        log = []
        out += [f(tj.tensor(values), log), log]
    return out

def continue_of_a_finally_in_one_case(jit):
    """It takes the place of a jump or an error, which goes on otherwise."""

    def breaks(x, log):
        k = 0
        while k < 4:
            k += 1
            try:
                break
            finally:
                log.append(k)
                if x.sum() < 3:
                    continue  # noqa: B012
        else:
            return x * 2
        return x * 0.5

    def returns(x, log):
        for _ in range(4):
            try:
                return x
            finally:
                if x.sum() < 3:
                    continue  # noqa: B012
        else:
            return x * 2

    def raises(x, log):
        for k in range(4):
            try:
                raise ValueError("goes on")
            finally:
                log.append(k)
                if x.sum() < 3:
                    continue  # noqa: B012
        return x * 2

    def until(x, log):
        k = tj.zeros(())
        while k < 4:
            k = k + 1
            try:
                if x.sum() > 5:
                    break
            finally:
                if x.sum() < 3:
                    continue  # noqa: B012
            x = x + 1
        else:
            return x * 2
        return x * 0.5

    out = []
    for body in (breaks, returns, raises, until):
        f = jit(body)
        for value in (-1.0, 2.0, 4.0, 0.0):
            log = []
            try:
                out.append(f(tj.full((2,), value), log))
            except ValueError as error:
                out.append(str(error))
            out.append(log)
    return out


def error_in_an_iteration_that_a_tensor_allows(jit):
    """The iterations that are left are tried, and run again where they raise."""

    def breaks(x):
        for k in range(2):
            if k == 1:
                raise ValueError("second")
            if x.sum() > 8:
                break
        else:
            x = x + 1
        return x

    def returns(x):
        for k in range(3):
            if k == 2:
                raise ValueError("third")
            if x.sum() > 8 - k:
                return x * 2
        return x

    def asserts(x):
        for k in (3, 5):
            assert k < 4, "four"
            if x.sum() > 8:
                break
        return x

    out = []
    for body in (breaks, returns, asserts):
        f = jit(body)
        for value in (1.0, 5.0, 2.0, 3.7):
            try:
                out.append(f(tj.full((2,), value)))
            except (ValueError, AssertionError) as error:
                out.append(str(error))
    return out


def rows_of_a_leaf_are_written(jit):
    def rows(x, t):
        for k, row in enumerate(t):
            x[k] = row.sum()
        return x

    def columns(x, t):
        for k in range(t.shape[0]):
            x[:, k] = 1
        return x

    out = []
    for body in (rows, columns):
        f = jit(body)
        for size, count in ((3, 2), (20, 16), (20, 20)):
            for tracked in (True, False):
                x = tj.ones(size, size, requires_grad=tracked)
                try:
                    out.append(f(x, tj.ones(count, 2)))
                except RuntimeError as error:
                    out.append(str(error))
                out.append(x)
    return out


def variables_of_a_return_that_is_called_off(jit):
    """What a variable was bound to before a `return` is read where that is not the end."""

    def by_an_error(x):
        y = x
        try:
            try:
                if x.sum() > 3:
                    y = x * 2
                    return None
            finally:
                raise ValueError
        except ValueError:
            pass
        return y

    def by_a_break(x):
        y = x
        for _ in range(3):
            try:
                if x.sum() > 3:
                    y = x * 2
                    return None
                x = x + 0.5
            finally:
                if x.sum() > 2:
                    break  # noqa: B012
        return x, y

    def by_a_manager(x):
        y = x
        try:
            with raising():
                if x.sum() > 3:
                    y = x * 2
                    return None
        except ValueError:
            pass
        return y

    @contextlib.contextmanager
    def raising():
        yield
        raise ValueError

    out = []
    for body in (by_an_error, by_a_break, by_a_manager):
        f = jit(body)
        for value in (1.0, 2.0, 0.0, 4.0):
            out.append(f(tj.full((2,), value)))
    return out


def views_of_arguments_in_loops_that_end_early(jit):
    def broken(x, y):
        v = x.unsqueeze(-1)
        for _ in range(v.shape[0]):
            v = v.tanh()
            if (y <= 0).all():
                break
        v.pow_(2)
        return v

    def broken_before(x, y):
        v = x.unsqueeze(-1)
        for k in range(v.shape[0] + 3):
            if y.sum() > k:
                break
            v = v.tanh()
        v.pow_(2)
        return v

    def narrowed(x, y):
        v = x[:2]
        for row in x:
            if row.sum() > 2:
                break
            v = v + 1
        v.mul_(2)
        return v

    out = []
    for body in (broken, broken_before, narrowed):
        f = jit(body)
        for rows in (3, 3, 20):
            for fill in (1, 0, 3):
                x = tj.ones(rows, 1, dtype=tj.float64)
                out += [f(x, tj.full((2,), fill)), x]
    return out


PROGRAMS = programs_in(globals())
