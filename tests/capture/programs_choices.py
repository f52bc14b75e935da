"""Programs in which a tensor chooses Python numbers, which are then used as numbers are.

Each calls its function with inputs that take every side, and shows results and what the caller's
objects hold, types included.
"""

from __future__ import annotations

import collections
import math

import tracejit as tj
from tests.capture.program_inputs import MANY, OTHER, TAKEN, data, shown, tried
from tests.capture.program_list import programs_in

Pair = collections.namedtuple("Pair", "first second")


def over_sides(f, *more):
    return [tried(f, tj.tensor(values), *more) for values in (OTHER, TAKEN, OTHER, TAKEN)]


def int_chosen(jit):
    @jit
    def f(x):
        k = 3 if x.sum() > 0 else 5
        return x * k, k, k + 1, -k

    return over_sides(f)


def float_chosen(jit):
    @jit
    def f(x):
        if x.sum() > 0:
            scale = 0.1
        else:
            scale = 1e300
        return x.double() * scale, scale, scale * 2.0, scale / 3

    return over_sides(f)


def counter_under_a_condition(jit):
    @jit
    def f(x):
        n = 0
        if x[0] > 0:
            n = n + 1
        if x[1] > 0:
            n += 10
        if x[2] < 0:
            n -= 100
        return x + n, n

    return over_sides(f)


def numbers_of_other_types(jit):
    @jit
    def f(x, kind):
        k = 3
        if x.sum() > 0:
            if kind == 0:
                k = 3.0
            elif kind == 1:
                k = True
            elif kind == 2:
                k = None
            else:
                k = "three"
        return k

    return [over_sides(f, kind) for kind in range(4)]


def flags_chosen(jit):
    @jit
    def f(x):
        up = False
        if x.sum() > 0:
            up = True
        if up:
            return x * 2, up
        return x - 1, up

    return over_sides(f)


def large_ints_chosen(jit):
    @jit
    def f(x, a, b):
        k = a
        if x.sum() > 0:
            k = b
        return k, k + 1, k * 3

    pairs = ((1, 2), (2**31, 5), (2**62, -(2**62)), (2**63, 1), (-(2**63), 2**70))
    return [over_sides(f, a, b) for a, b in pairs]


def special_floats_chosen(jit):
    @jit
    def f(x):
        a, b, c = 0.0, float("inf"), float("nan")
        if x.sum() > 0:
            a, b, c = -0.0, -float("inf"), 1.0
        return math.copysign(1.0, a), b, str(c), x * a

    return over_sides(f)


def chosen_number_decides(jit):
    @jit
    def f(x):
        k = 3 if x.sum() > 0 else 5
        if k > 4:
            return x * 2
        return x * 3

    return over_sides(f)


def chosen_number_is_looked_at(jit):
    @jit
    def f(x):
        k = 3 if x.sum() > 0 else 0
        found = [k == 3, k in (3, 5), bool(k), not k, isinstance(k, bool), type(k) is int]
        return found, {0: "zero", 3: "three"}[k], str(k), f"{k:>4}", divmod(k, 2), round(k / 2)

    return over_sides(f)


def chosen_number_is_a_shape(jit):
    @jit
    def f(x):
        k = 2 if x.sum() > 0 else 1
        total = x[:k].sum()
        for i in range(k):
            total = total + i
        return total, tj.ones(k), [10, 20, 30][k]

    return over_sides(f)


def chosen_number_in_functions(jit):
    @jit
    def f(x):
        k = 2 if x.sum() > 0 else 1
        return math.sqrt(k), float(k), int(k), abs(-k), max(k, 0), k**2, 2**k, sum([k, k])

    return over_sides(f)


def chosen_number_is_stored(jit):
    class Box:
        count = 0

    box, seen, table = Box(), [], {}

    @jit
    def f(x):
        k = box.count
        if x.sum() > 0:
            k = k + 1
        box.count = k
        seen.append(k)
        table["last"] = (k, x * k)
        return x

    return shown(f, lambda: [box.count, [*seen], dict(table)])


def number_of_the_caller_chosen(jit):
    @jit
    def f(x, n, scale):
        k, s = n, scale
        if x.sum() > 0:
            k, s = n + 1, scale * 2
        return x * k, k, s

    calls = ((1, 0.5), (2, 0.5), (7, 1.5), (2**40, 1.0), (3, 2.0))
    return [over_sides(f, n, scale) for n, scale in calls]


def numbers_in_structures(jit):
    @jit
    def f(x):
        if x.sum() > 0:
            got, pair = (x * 2, 1, {"n": 2}), Pair(1.5, x)
        else:
            got, pair = (x - 1, 4, {"n": 5}), Pair(2.5, x * 3)
        return got, tuple(pair)

    return over_sides(f)


def returned_numbers(jit):
    @jit
    def f(x):
        if x[0] > 0:
            if x[1] > 0:
                return x * 2, 1
            return x * 3, 2
        return x, 3

    return over_sides(f)


def numbers_with_integer_tensors(jit):
    @jit
    def f(x):
        k = 3 if x.sum() > 0 else 2
        whole = x.long()
        byte = x.abs().to(tj.uint8)
        return whole * k, whole // k, whole % k, whole**k, byte + k, (x > 0) * k, whole / k

    return over_sides(f)


def numbers_with_gradients(jit):
    @jit
    def f(x):
        k, s = (3, 0.5) if x.sum() > 0 else (5, 1.5)
        return (x * k).sum() * s

    out = []
    for values in (OTHER, TAKEN):
        x = tj.tensor(values, requires_grad=True)
        y = f(x)
        y.backward()
        out += [y, x.grad]
    return out


def counter_under_a_condition_in_a_loop(jit):
    @jit
    def f(x):
        ups, weight = 0, 1.0
        total = tj.zeros(3)
        for t in range(x.shape[0]):
            if x[t].sum() > 0:
                ups = ups + 1
                weight = weight * 0.5
            total = total + x[t] * weight + ups
        return total, ups, weight

    return [f(data(n)) for n in (MANY, 3, 1, 40)]


def step_chosen_in_a_loop(jit):
    @jit
    def f(x, k):
        n = 0
        for t in range(x.shape[0]):
            step = k
            if x[t].sum() > 0:
                step = 2
            n = n + step
        return n

    return [f(data(MANY), k) for k in (1, 5, 6, 2**62, 7)]


def place_of_the_largest(jit):
    @jit
    def f(x):
        best, at = x[0], 0
        for t in range(1, x.shape[0]):
            if x[t] > best:
                best, at = x[t] * 1, t
        return best, at

    return [f(data(n, 1).view(n)) for n in (MANY, 3, 1, 40)]


def chosen_number_in_a_while(jit):
    @jit
    def f(x):
        ups, downs = 0, 0
        while x.abs().sum() > 1:
            if x.sum() > 0:
                x = x - 1
                downs += 1
            else:
                x = x * 0.5
                ups += 1
        return x, ups, downs

    return over_sides(f)


def chosen_number_printed(jit):
    lines = []

    @jit
    def f(x):
        k = 3 if x.sum() > 0 else 5
        lines.append(f"chose {k} of {k + 1}")
        return x

    return [*over_sides(f), lines]


def chosen_twice(jit):
    @jit
    def f(x):
        k = 1
        if x[0] > 0:
            k = 2
        m = k
        if x[1] > 0:
            m = k + 5
        else:
            k = m + 7
        return k, m, x * (k + m)

    return over_sides(f)


def number_doubled_often(jit):
    @jit
    def f(x):
        k = 1 if x.sum() > 0 else 3
        for _ in range(70):
            k = k + k
        return k

    return over_sides(f)


def size_or_number(jit):
    @jit
    def f(x):
        k = x.shape[0]
        if x.sum() > 0:
            k = 7
        return x * k, k

    return [f(data(n)) for n in (4, 5, 1)]


PROGRAMS = programs_in(globals())
