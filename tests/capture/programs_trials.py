"""Programs whose sides and loop bodies do what no trial may do.

A branch on a tensor records both sides, a rolled loop records its body once. Each program here has
an effect that would then be seen: of the side not taken, or once for many iterations.
"""

from __future__ import annotations

import collections
import functools
import operator

import tracejit as tj
from tests.capture.program_inputs import MANY, OTHER, TAKEN, filled, leaf, shown
from tests.capture.program_list import programs_in
from tracejit import nn

# -- iterators -------------------------------------------------------------------------------------


def iterator_consumed_in_one_side(jit):
    def unpacked(it):
        first, *_ = it
        return first

    ways = [
        next, lambda it: list(it)[0], lambda it: 2.0 in it, lambda it: max(*it), unpacked,
        lambda it: [v + 1 for v in it][1], lambda it: sum(v * 2 for v in it),
    ]  # fmt: skip

    def program(way):
        it = iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])

        @jit
        def f(x):
            return x * way(it) if x.sum() > 0 else x + 1

        return [shown(f, inputs=(OTHER, TAKEN)), sum(it)]

    return [program(way) for way in ways]


def iterator_looped_over_in_both_sides(jit):
    @jit
    def f(x):
        it, y = iter([1.0, 2.0, 3.0]), x
        if x.sum() > 0:
            for v in it:
                y = y * v
        else:
            for v in it:
                y = y - v
        return y, list(it)

    return shown(f)


def iterator_advanced_in_loops(jit):
    @jit
    def counted(x):
        it, y = iter(range(100)), x
        for _ in range(MANY):
            y = y + next(it)
        return y

    @jit
    def opened(x):
        it, y = iter(range(100)), x
        while y.sum() < 50:
            y = y + next(it) + 5
        return y

    @jit
    def generated(x):
        doubled, y = (v * 2 for v in [1.0, 2.0, 3.0]), x
        for _ in range(MANY):
            for v in doubled:
                y = y + v
        return y

    return [shown(counted), shown(opened), shown(generated)]


# -- effects of one side ---------------------------------------------------------------------------


def container_changed_by_a_builtin_in_one_side(jit):
    ways = [
        (dict, lambda d: operator.setitem(d, "a", 1)),
        (list, lambda d: list.append(d, 1)),
        (collections.deque, lambda d: d.append(1)),
        (lambda: collections.defaultdict(int), lambda d: d["k"]),
        (list, lambda d: operator.iadd(d, [1])),
        (dict, lambda d: dict.update(d, a=1)),
        (lambda: collections.deque([1, 2, 3]), lambda d: d.rotate(1)),
        (list, lambda d: functools.reduce(operator.iadd, [[1], [2]], d)),
        (list, lambda d: d.insert(0, 1)),
        (set, lambda d: d.add(3)),
    ]

    def program(make, change):
        held = make()

        @jit
        def f(x):
            if x.sum() > 0:
                change(held)
                return x * 2
            return x - 1

        items = dict.items if isinstance(held, dict) else list
        return shown(f, lambda: list(items(held)))

    return [program(*way) for way in ways]


class Counting:
    """An object whose every use shows in `n`."""

    def __init__(self):
        self.n = 0

    def used(self, result):
        self.n += 1
        return result

    def __add__(self, other):
        self.n += 1
        return other + 1

    def __getitem__(self, key):
        self.n += 1
        return 2.0

    def __getattr__(self, name):
        if name != "dynamic":
            raise AttributeError(name)
        self.n += 1
        return 4.0

    @property
    def computed(self):
        self.n += 1
        return 3.0

    def __bool__(self):
        self.n += 1
        return True

    def __eq__(self, other):
        self.n += 1
        return True

    def __enter__(self):
        self.n += 1

    def __exit__(self, *exc):
        self.n += 10

    def __iter__(self):
        self.n += 1
        return iter([1.0, 2.0])

    def __call__(self, value):
        self.n += 1
        return value


def user_code_reached_by_syntax_in_one_side(jit):
    def within(c, x):
        with c:
            return x + 1

    ways = [
        lambda c, x: c + x, lambda c, x: c[0] + x, lambda c, x: c.dynamic + x,
        lambda c, x: c.computed + x, lambda c, x: (3 if c else 2) + x,
        lambda c, x: (3 if c == 3 else 2) + x, within, lambda c, x: x + sum(c),
        lambda c, x: x * list(map(c, [1, 2]))[0], lambda c, x: x * sorted([1, 2], key=c)[0],
        lambda c, x: functools.partial(c)(x), lambda c, x: c.used(x),
    ]  # fmt: skip

    def program(way):
        c = Counting()

        @jit
        def f(x):
            return way(c, x) if x.sum() > 0 else x * 2

        return shown(f, lambda: c.n, (OTHER, TAKEN))

    return [program(way) for way in ways]


def names_of_others_stored_by_functions_that_sides_call(jit):
    count, last = 0, None

    def counted(x):
        nonlocal count
        count += 1
        return x * 2

    def kept(x):
        nonlocal last
        last = x + 1
        return last

    def both(x):
        nonlocal count, last
        count, last = count + 10, x
        return x

    def program(function):
        @jit
        def f(x):
            return function(x) if x.sum() > 0 else x - 1

        return shown(f, lambda: (count, last))

    return [program(function) for function in (counted, kept, both)]


def refusal_caught_by_the_program(jit):
    kept = []

    def finally_returns(x):
        try:
            kept.insert(0, 1)
        finally:
            return x * 2  # noqa: B012

    def catches(x):
        try:
            kept.insert(0, 2)
        except BaseException:
            x = x + 1
        return x * 2

    def reads(x):
        try:
            k = x[0].item()
        except BaseException:
            k = 100.0
        return x * k

    def program(way):
        @jit
        def f(x):
            return way(x) if x.sum() > 0 else x + 0.5

        return shown(f, lambda: list(kept))

    return [program(way) for way in (finally_returns, catches, reads)]


def hooks_and_functions_in_sides_and_loops(jit):
    log, w = [], leaf(3.0, 4.0, 5.0)
    hooked, counted = filled(nn.Linear(3, 3)), filled(nn.Linear(3, 3))
    hooked.register_forward_hook(lambda module, i, o: log.append(1) or o * 2)
    counted.register_forward_pre_hook(lambda module, i: log.append(2))

    class Doubled(tj.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            log.append(3)
            return a * 2

        @staticmethod
        def backward(ctx, grad):
            log.append(4)
            return grad * 3

    @jit
    def side(x):
        return hooked(x) if x.sum() > 0 else x

    @jit
    def loop(x):
        for _ in range(MANY):
            x = counted(x)
        return x

    @jit
    def function(x):
        return x + Doubled.apply(w) if x.sum() > 0 else x + w

    out = [shown(f, lambda: list(log)) for f in (side, loop, function)]
    function(tj.tensor(TAKEN)).sum().backward()
    return [out, log, w]


# -- containers ------------------------------------------------------------------------------------


def container_of_the_caller_chosen(jit):
    one, other = {}, {}

    @jit
    def chosen(x):
        d = one if x.sum() > 0 else other
        d["k"] = x * 3
        return x

    @jit
    def renamed(x):
        m, kept = [x], [x * 2]
        if x.sum() > 0:
            kept = m
        kept.append(x * 3)
        return m, kept

    @jit
    def two_names(x):
        if x.sum() > 0:
            p = [x]
            q = p
        else:
            p = [x * 2]
            q = p
        p.append(x)
        return q

    return [shown(f, lambda: (dict(one), dict(other))) for f in (chosen, renamed, two_names)]


def list_handed_through_a_loop(jit):
    def step(a, kept):
        kept.append(a)
        return a + 1, kept

    @jit
    def f(x):
        kept, a = [x], x
        for _ in range(MANY):
            a, kept = step(a, kept)
        return a, kept

    return shown(f)


def list_read_while_a_loop_appends(jit):
    def by_length(kept, x):
        kept.append(x)
        return x + len(kept)

    def by_last(kept, x):
        kept.append(kept[-1] * 0.5 + 1)
        return x

    def by_truth(kept, x):
        y = x * 2 if kept[1:] else x + 1
        kept.append(y)
        return y

    def by_sum(kept, x):
        kept.append(sum(kept) * 0.25)
        return x

    def program(step):
        @jit
        def f(x):
            kept = []
            kept.append(x)
            for _ in range(MANY):
                x = step(kept, x)
            return kept, x

        return shown(f)

    return [program(step) for step in (by_length, by_last, by_truth, by_sum)]


def list_appended_to_by_nested_loops(jit):
    @jit
    def nested(x):
        kept = []
        for i in range(MANY):
            for j in range(MANY):
                kept.append(x + i + j)
        return tj.stack(kept).sum(0)

    @jit
    def in_a_side(x):
        kept = []
        if x.sum() > 0:
            for j in range(MANY):
                kept.append(x + j)
        return len(kept)

    @jit
    def in_a_while(x):
        kept = []
        while x.sum() < 9:
            for j in range(MANY):
                kept.append(x + j)
            x = x + 1
        return len(kept)

    return [shown(f) for f in (nested, in_a_side, in_a_while)]


def type_of_a_list_that_grew(jit):
    @jit
    def f(x):
        kept = []
        factor = 2 if type(kept) is list else 3
        for i in range(MANY):
            kept.append(x + i)
        list.append(kept, x * 100)
        kept.append(x * 200)
        return kept, factor

    out = shown(f)
    return [out, [type(kept) is list for kept, _ in out[::3]]]


def joined_after_a_loop(jit):
    @jit
    def f(x):
        kept = []
        kept.append(x)
        for i in range(MANY):
            kept.append(x * i)
        kept.append(x + 7)
        return tj.stack(kept), tj.stack(kept, 1), tj.cat(kept, -1), tj.stack(kept, dim=-1)

    return shown(f)


PROGRAMS = programs_in(globals())
