"""Programs with numbers of rolled loops, and with regions that end by an exception."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import MANY, OTHER, TAKEN, shown, tried
from tests.capture.program_list import programs_in

# -- numbers ---------------------------------------------------------------------------------------


def index_of_the_iteration_before(jit):
    @jit
    def number(x):
        prev = 0
        for i in range(MANY):
            x = x + prev
            prev = i
        return x, prev

    @jit
    def none(x):
        prev = None
        for i in range(MANY):
            if prev is not None:
                x = x + prev
            prev = i
        return x, prev

    @jit
    def shifted(x):
        i = 5
        for k in range(MANY):
            x = x + i
            i = 7 - k
        return x, i

    return [shown(f) for f in (number, none, shifted)]


def numbers_that_outgrow_an_int64(jit):
    @jit
    def doubled(x):
        s = 1
        for _ in range(100):
            s = s + s
            x = x + 1
        return x, s

    @jit
    def summed(x):
        s = t = 1
        while x.sum() < 300:
            s, t = s + t, s - t + s
            x = x + 1
        return x, s, t

    return [shown(doubled), shown(summed)]


def negation_as_a_value(jit):
    ways = [
        lambda x: not x.sum() > 0, lambda x: (not x.sum() > 0) + (not x[0] > 5),
        lambda x: x * -(not x.sum() > 0), lambda x: [1, 2][not x.sum() > 0] * x,
    ]  # fmt: skip
    return [shown(jit(way)) for way in ways]


def negative_places_in_a_loop(jit):
    def opposite(x):
        return sum(x[-i] * i for i in range(MANY))

    def negative(x):
        s = x[0] * 0
        for i in range(MANY):
            s = s + x[-i] * i
        return s

    def mixed(x):
        s = x[0] * 0
        for i in range(MANY):
            s = s + x[i - 3] * i
        return s

    def turned(x):
        x = tj.cat([x, x * 2])
        s = x[0] * 0
        for i in range(MANY):
            s = s * 0.9 + x[19 - i]
        return s

    def counter(x):
        k, s = 0, x[0] * 0
        for row in x:
            k -= 1
            s = s + x[k] * row
        return s

    def outside(x):
        s = x[0] * 0
        for i in range(25):
            s = s + x[i]
        return s

    x = tj.arange(60.0).reshape(MANY, 3)
    return [tried(jit(f), x) for f in (opposite, negative, mixed, turned, counter, outside)]


def index_read_after_a_rolled_loop(jit):
    @jit
    def f(x):
        for i in range(2, 80, 3):
            x = x + i
        for j, row in enumerate(x.expand(MANY, 3), 5):
            x = x * 0.5 + row * j
        return x, i, j

    @jit
    def broken(x):
        for i in range(3, 90, 2):
            x = x + i
            if x.sum() > 30:
                break
        return x, i

    return [shown(f), shown(broken)]


def ranges_with_steps(jit):
    @jit
    def f(x):
        out, n = x[0] * 0, x.shape[0]
        last = -1
        for i in range(1, n, 3):
            out = out * 0.5 + x[i] * i
            last = i
        for i in range(n - 1, -1, -2):
            out = out * 0.5 + x[i]
        return out, last

    return [f(tj.arange(3.0 * n).reshape(n, 3)) for n in (50, 51, 52, 7)]


def rows_written_backwards(jit):
    @jit
    def f(x):
        y = tj.zeros(MANY, 3)
        for i in range(MANY - 1, -1, -1):
            y[i] = x * i
        return y

    return shown(f)


def index_counted_on_after_a_first_iteration(jit):
    @jit
    def f(x):
        y = None
        for i, row in enumerate(x, 3):
            y = row * i if y is None else y * 0.5 + row * i
        return y

    @jit
    def refused(x):
        y = None
        for i, row in enumerate(x):
            y = row * 0.5 if y is None else y * 0.5 + row.sum().item() + i
        return y

    @jit
    def growing(x):
        y = None
        for i, row in enumerate(x):
            y = row * 0.5 if y is None else tj.cat([y, row + i])
        return y

    out = []
    for n in (MANY, MANY + 3):
        x = tj.arange(3.0 * n).reshape(n, 3)
        out += [f(x), refused(x), growing(x)]
    return out


def types_of_numbers_in_a_loop(jit):
    @jit
    def f(x):
        by_type = {int: 1.0, float: 2.0}
        for i in range(MANY):
            if type(i) is int:
                x = x + 1
            if i.__class__ is int:
                x = x + 2
            x = x + by_type.get(type(i), 100.0)
        return x

    return shown(f)


def zeros_of_both_signs_in_sides(jit):
    @jit
    def f(x):
        k = 0.0 if x.sum() > 0 else -0.0
        return tj.ones(()) / (tj.zeros(()) + k), k

    return shown(f)


# -- ends ------------------------------------------------------------------------------------------


class Detailed(Exception):
    """An exception that is not made of its arguments."""

    def __init__(self, text, detail):
        super().__init__(text)
        self.detail = detail


def exception_with_more_than_arguments(jit):
    @jit
    def raised(x):
        if x.sum() > 0:
            raise Detailed("m", 3)
        return x

    @jit
    def caught(x):
        try:
            if x.sum() > 0:
                raise Detailed("m", 3)
        except Detailed as error:
            return x * error.detail
        return x

    @jit
    def chained(x):
        if x.sum() > 0:
            raise ValueError("v") from KeyError("k")
        return x

    causes = [repr(getattr(y, "__cause__", None)) for y in shown(chained)[::3]]
    return [shown(raised), shown(caught), causes]


def writes_before_a_loop_raises(jit):
    def loop(x):
        for _ in range(MANY):
            x.add_(1)
            if x.sum() > 20:
                raise ValueError("v")
        return x

    def opened(x):
        while x.sum() < 100:
            x.add_(1)
            assert x.sum() < 20, "w"
        return x

    def nested(x):
        x.add_(1)
        if x[0] > 1:
            x.add_(1)
            if x.sum() > 3:
                raise KeyError("k")
        return x

    def index(x):
        for i in range(25):
            x += x[i] * 1
        return x

    inputs = (TAKEN, (-100.0, 1.0, 1.0), TAKEN)
    return [shown(jit(f), inputs=inputs) for f in (loop, opened, nested, index)]


def while_left_by_either_way(jit):
    @jit
    def f(x):
        n = 0
        while x.sum() < 40:
            x = x + 1
            n += 1
            if x[0] > 5:
                break
        else:
            n += 100
        return x, n

    return shown(f, inputs=(TAKEN, OTHER, (-60.0, 1.0, 90.0), (90.0, 0.0, 0.0)))


# -- bools and large ints of loops -----------------------------------------------------------------


def _rows(n):
    return tj.arange(2.0 * n).reshape(n, 2) / 4


def _over_rows(*functions):
    return [tried(f, _rows(n)) for f in functions for n in (20, 20, 24, 3)]


def comparison_within_a_loop_is_a_bool(jit):
    table = {True: 2.0, False: 3.0}

    @jit
    def arithmetic(x):
        s = x[0] * 0
        for i in range(x.shape[0]):
            s = s + x[i] * ((i > 3) + (i > 7)) - i * (i < 9)
        return s

    @jit
    def looked_up(x):
        s = x[0] * 0
        for i in range(x.shape[0]):
            s = s + x[i] * table.get(i > 3, 100.0)
        return s

    @jit
    def looked_at(x):
        s = x[0] * 0
        for i in range(x.shape[0]):
            if (i > 3) is True and isinstance(i > 5, bool) and type(i > 5) is bool:
                s = s + x[i]
        return s

    @jit
    def chosen(x):
        s = x[0] * 0
        for i in range(x.shape[0]):
            w = i == 5 or i == 7
            v = 3 < i < 9
            s = s + x[i] * (w + v + v) + ((i > 2) & (i < 6))
        return s

    return _over_rows(arithmetic, looked_up, looked_at, chosen)


def comparison_that_leaves_a_loop_or_branch(jit):
    @jit
    def left(x):
        late, s = tj.tensor(False), x[0] * 0
        for i in range(x.shape[0]):
            s = s + x[i]
            late = i >= 3
        return s, late

    @jit
    def returned(x):
        for i in range(x.shape[0]):
            if x[i].sum() > 8:
                return i > 3
        return x

    @jit
    def of_chosen(x):
        n = 1 if x.sum() > 9 else 3
        if x[0].abs().sum() < 100:
            x = x * ((n > 0) + (n > 2))
        return x, n

    return _over_rows(left, returned, of_chosen)


def large_ints_in_a_loop(jit):
    @jit
    def product(x):
        s = x[0] * 0
        for i in range(x.shape[0]):
            if i * 32767 * 32767 * 32767 * 32767 * 16 < 0:
                s = s - 1000
            s = s + x[i]
        return s

    @jit
    def total(x):
        s, n = x[0] * 0, 0
        for i in range(x.shape[0]):
            n = n + (i + (1 << 60))
            if n < 0:
                s = s - 1000
            s = s + x[i]
        return s, n

    @jit
    def stored(x):
        s, n = x[0] * 0, 0
        for i in range(x.shape[0]):
            n = 1 << 70
            s = s + x[i]
        while s.sum() < 1000:
            s, n = s * 2 + 1, 1 << 63
        return s, n

    @jit
    def ranges(x, start):
        for i in range(start, start + 20):
            if i + i > 0:
                x = x + 1
        return x, i

    starts = (1 << 62, (1 << 63) - 5, 1 << 70, -(1 << 62) - 30, 5)
    return [*_over_rows(product, total, stored), *(ranges(_rows(2), k) for k in starts)]


def index_where_a_loop_was_left_within_a_branch(jit):
    @jit
    def f(x):
        for i, r in enumerate(x):  # noqa: B007
            if r > 1.5:
                break
        else:
            i = -1
        return x * i if x.sum() > 0 else x - i / 2, i

    values = ([1.0, 2.0], [-3.0, 1.0], [1.0, 1.0])
    dtypes = (tj.float32, tj.float64, tj.int64)
    return [tried(f, tj.tensor(v).to(dtype)) for dtype in dtypes for v in values]


def ints_beside_floats(jit):
    @jit
    def counted(x):
        n = 0
        for i, r in enumerate(x):
            if n < 2.5:
                x = x + r
            if i >= 3.5 or n == 4.0:
                x = x - i
            n += 1
        return x, n

    @jit
    def chosen(x, n, f):
        if x.sum() > 0:
            n, f = n + 1, f + 2
        told = 0
        if x[1] < 100:  # within a region
            told += n > f
            told += 10 * (f < n)
            told += 100 * (n == 2.0**53)
            told += 1000 * (n != float("nan"))
            told += 10_000 * (n > float("-inf"))
        return told

    pairs = ((2, 2.5), (2**53, 2.0**53), (2**53 - 1, 2.0**53), (2**53 + 1, 2.0**53))
    return [[tried(counted, tj.arange(float(k))) for k in (20, 2, 0)],
            [shown(lambda x, n=n, f=f: chosen(x, n, f)) for n, f in pairs]]


def int_of_a_branch_beside_a_large_one(jit):
    @jit
    def after(x, k):
        n = 5 if x.sum() > 0 else -7
        return n + k, n - k, k - n, n + (2**63 - 3), n - 2**70, n * 2**62

    @jit
    def within(x, k):
        n = 5 if x.sum() > 0 else -7
        total = 0
        if x[1] < 100:
            total = n + k
        if x[1] > 1 and n < k:
            total = total + 1
        return total

    large = (3, 2**62, 2**63 - 3, -(2**63), 2**64)
    return [shown(lambda x, f=f, k=k: f(x, k)) for f in (after, within) for k in large]


def index_that_a_branch_chose(jit):
    @jit
    def f(x):
        n = 1 if x.sum() > 0 else -1
        y = x.repeat(3, 1)
        y[n, 1:] = 5.0
        y[n][n] += 1
        x[n] *= 2
        return x[n], x[n:], y, y[:, n]

    @jit
    def counted(x):
        n = 0
        while x.sum() > n:
            n = n + 1
        x[n] = 7.0
        return x[n - 1]

    return [shown(f), shown(counted)]


def loops_over_sizes_of_a_segment_that_is_over(jit):
    def backwards(x, n):
        out = x[0] * 4
        for i in range(n - 1, -1, -2):
            out = out * 0.5 + x[i]
        return out

    def half(x, n):
        out = x[0] * 4
        for i in range(n // 2):
            out = out * 0.5 + x[i] * i
        return out

    def peeled(x, n):
        last = None
        for _, row in zip(range(n // 2), x):
            last = row if last is None else last * 0.5 + row
            x = x[: (x > -1).nonzero().shape[0]]
        return last

    out = []
    for body in (backwards, half, peeled):
        @jit
        def f(x):
            n = x.shape[0]
            if (x > 3).nonzero().shape[0] > 1000:
                x = x + 1
            return body(x, n)  # noqa: B023

        out += [f(tj.arange(3.0 * n).reshape(n, 3)) for n in (7, 50, 51, 20)]
    return out


PROGRAMS = programs_in(globals())
