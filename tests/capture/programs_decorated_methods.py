"""Programs whose classes have decorated special methods: wrappers with `*args`, which no code names
and which close over what they wrap; and functions of `bisect`, which only compute."""

from __future__ import annotations

import bisect
import functools

import tracejit as tj
from tests.capture.program_list import programs_in


def counted(scale, calls=None):
    """A decorator with numbers of its own."""
    box = {"scale": scale}

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            found = function(*args, **kwargs)
            if calls is not None:
                calls.append(1)
            return found * box["scale"]

        return wrapper

    decorate.box = box
    return decorate


def decorated_special_methods(jit):
    first, second = counted(2), counted(3.0)

    class Table:
        def __init__(self):
            self.rows = tj.arange(6.0).reshape(3, 2)

        @first
        def __getitem__(self, k):
            return self.rows[k]

        @first
        @second
        def __add__(self, other):
            return self.rows + other

        @second
        def __radd__(self, other):
            return self.rows - other

        @first
        def __neg__(self):
            return -self.rows

        @first
        def __len__(self):
            return 3

        @second
        def __call__(self, x):
            return self.rows.sum() * x

    t = Table()

    def f(x):
        return t[1] * x, t + x, x * len(t), -t, t(x)

    f = jit(f)
    found = [f(tj.ones(2)) for _ in range(3)]
    first.box["scale"] = 5
    found += [f(tj.ones(2)) for _ in range(2)]
    t.rows[1, 1] = 9.0
    found += [f(tj.ones(2)) for _ in range(2)]
    Table.__call__ = counted(7.0)(lambda self, x: self.rows.sum() * x)
    found += [f(tj.ones(2)) for _ in range(2)]
    Table.__call__ = counted(11.0)(lambda self, x: self.rows.sum() * x)
    return [*found, f(tj.ones(2)), f(tj.ones(2))]


def decorated_calls_of_modules(jit):
    calls = []
    settings = counted(2.0, calls)

    class Mean(tj.nn.Module):
        @settings
        def __call__(self, x, dim=0, **kwargs):
            return super().__call__(x, dim=dim, **kwargs)

        def forward(self, x, dim=0):
            return x.mean(dim)

    class Twice(Mean):
        def forward(self, x, dim=0):
            return super().forward(x, dim) * 2

    def f(module, x):
        return module(x, dim=1)

    f, modules = jit(f), (Mean(), Twice())
    found = [f(m, tj.arange(6.0).reshape(2, 3)) for m in modules for _ in range(2)]
    settings.box["scale"] = 4.0
    found += [f(m, tj.arange(6.0).reshape(2, 3)) for m in modules for _ in range(2)]
    return found, len(calls)


def decorated_constructors_and_contexts(jit):
    scale = counted(1.0)
    log = []

    def told(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            log.append(function.__name__)
            return function(*args, **kwargs)

        return wrapper

    class Scope:
        depth = 0

        @told
        def __init__(self, by):
            self.by = by

        @told
        def __enter__(self):
            return self

        @told
        def __exit__(self, *error):
            return False

        @scale
        def __mul__(self, other):
            return other * self.by

    def f(x, by):
        with Scope(by) as scope:
            return scope * x

    f = jit(f)
    found = [f(tj.ones(2), by) for by in (2.0, 2.0, 3.0)]
    scale.box["scale"] = 2
    return found, f(tj.ones(2), 3.0), f(tj.ones(2), 4.0), log


def decorated_methods_of_functions(jit):
    scale = counted(2.0)

    def make(power):
        class Power(tj.autograd.Function):
            @staticmethod
            @scale
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x**power

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return grad * x

        return Power

    square, cube = make(2), make(3)

    def f(x):
        with tj.no_grad():
            return square.apply(x) + cube.apply(x)

    f = jit(f)
    found = [f(tj.ones(2) * 2) for _ in range(3)]
    scale.box["scale"] = 3.0
    return found, f(tj.ones(2) * 2), f(tj.ones(2))


def places_in_sorted_lists(jit):
    edges = [1, 4, 9]

    def f(x, n):
        mine = [2, 8]
        bisect.insort(mine, n)
        return x * bisect.bisect(edges, n) + bisect.bisect_left(mine, 5) * 10, mine

    f = jit(f)
    found = [f(tj.ones(2), n) for n in (0, 1, 4, 5, 4, 20)]
    edges[1] = 2
    found += [f(tj.ones(2), n) for n in (3, 3)]
    bisect.insort(edges, 3)
    return [*found, f(tj.ones(2), 4), f(tj.ones(2), 4)]


def numbers_under_other_names(jit):
    class Gain:
        def __init__(self, value):
            self.value = value

        def _given(*args):
            return args[0].value * 2

        __float__ = _given
        __int__ = lambda *args: int(args[0].value) + 1  # noqa: E731

        def __bool__(*args):
            return args[0].value > 2

    kept = Gain(1.0)

    def f(x, v):
        kept.value = v + 1
        made = Gain(v)
        return x * float(made) + int(made), x * float(kept) + (2.0 if made else 3.0), made._given()

    f = jit(f)
    found = [f(tj.ones(2), v) for v in (2.0, 3.0, 4.0, 3.0)]
    Gain.__float__ = lambda self: self.value * 5
    return [*found, f(tj.ones(2), 3.0), f(tj.ones(2), 5.0)]


def numbers_of_replaced_wrappers(jit):
    def raised(function):
        def inner(*args):
            return args[0].value + 1

        return inner

    class Gain:
        def __init__(self, value):
            self.value = value

        @raised
        def __float__(self):
            return self.value

        @raised
        def __index__(self):
            return self.value

    def f(x, v, n):
        return x * float(Gain(v)) + [5.0, 6.0, 7.0, 8.0][Gain(n)]

    f = jit(f)
    return [f(tj.ones(2), v, n) for v, n in ((2.0, 0), (3.0, 1), (4.0, 2), (0.5, 0))]


PROGRAMS = programs_in(globals())
