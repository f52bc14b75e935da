"""Programs on how functions are called: wrappers, partials, globals, spread arguments."""

from __future__ import annotations

import builtins
import contextlib
import functools
import math
import operator
import os
import warnings

import tracejit as tj
from tests.capture.program_inputs import tried
from tests.capture.program_list import programs_in


def two():
    return tj.tensor([1.0, 2.0])


def partial_functions(jit):
    def g(x, y, k=1.0, *, z=None):
        r = x * y * k
        return r if z is None else r + z

    a = tj.ones(2)
    h = jit(functools.partial(g, a, k=2.0))
    out = [h(a), h(a * 3), h(a, z=a), h(a, k=5.0)]
    a.add_(1)
    out.append(h(tj.ones(2)))
    inner = functools.partial(g, k=3.0)
    f = jit(lambda x, fn: fn(x, x))
    out += [
        f(a, inner),
        f(a, functools.partial(g, k=4.0)),
        f(a, functools.partial(g, k=4.0, z=a)),
        f(a, g),
    ]
    return out


def partial_changes(jit):
    p = functools.partial(lambda x, k, b=0.0: x * k + b, k=2.0)
    f = jit(p)
    x = two()
    out = [f(x), f(x, b=1.0), f(x)]
    p.keywords["k"] = 5.0
    out += [f(x), f(x)]
    p.keywords["b"] = 7.0
    out += [f(x), f(x, b=2.0)]
    return out


def wrapper_with_other_parameters(jit):
    def scaled(fn):
        @functools.wraps(fn)
        def inner(x, k=2.0, *, bias=0.0):
            return fn(x) * k + bias

        return inner

    @jit
    @scaled
    def f(x):
        return x + 1

    x = two()
    return [f(x), f(x, 3.0), f(x, k=4.0), f(x, bias=x), f(x), f(x, 5.0, bias=1.0)], f.__name__


def wrapper_with_other_defaults(jit):
    def deco(fn):
        @functools.wraps(fn)
        def inner(x, k=10.0):
            return fn(x, k)

        return inner

    f = jit(deco(lambda x, k=1.0: x * k))
    x = two()
    return [f(x), f(x, 2.0), f(x)]


def wrapper_sees_how_it_is_called(jit):
    log = []

    def deco(fn):
        @functools.wraps(fn)
        def inner(*args, **kwargs):
            log.append((len(args), sorted(kwargs)))
            return fn(*args, **kwargs)

        return inner

    @jit
    @deco
    def f(x, k=1.0, b=None):
        y = x * k
        return y if b is None else y + b

    x = two()
    out = [f(x), f(x, 2.0), f(x, k=3.0), f(x, b=x), f(x=x), f(x, 2.5), f(x, k=7.0), f(x, 2.75, x)]
    return [*out, log]


def many_floats_through_a_wrapper(jit):
    def deco(fn):
        @functools.wraps(fn)
        def inner(*args, **kwargs):
            return fn(*args, **kwargs)

        return inner

    f = jit(deco(lambda x, k, *, b=0.0: x * k + b))
    x = two()
    return [f(x, 0.5 * i, b=float(i)) for i in range(20)]


def ints_through_args(jit):
    f = jit(lambda *a, **k: a[0] * a[1] + k.get("n", 0))
    x = two()
    return [f(x, i, n=i * 2) for i in range(1, 12)] + [f(x, 2), f(x, 2.5, n=x)]


def spread_kept(jit):
    kept = []

    @jit
    def f(*args, **kw):
        kept.append((args, kw))
        return args[0] * args[1]

    x = two()
    out = [f(x, 2.0, z=1), f(x, 3.0, z=2), f(x, 3, z=3)]
    return [*out, kept, [type(a[1]).__name__ for a, _ in kept]]


def lambdas_as_arguments(jit):
    f = jit(lambda x, g: g(x))
    x = two()
    fs = [
        lambda x: x + 1,
        lambda x: x + 2,
        abs,
        tj.exp,
        tj.log,
        math.prod,
        operator.neg,
        functools.partial(operator.mul, 2),
        operator.methodcaller("sum"),
        operator.itemgetter(0),
        operator.itemgetter(1),
        operator.attrgetter("T"),
        two().add,
        two().mul,
        (two() * 2).add,
    ]
    out = []
    for _ in range(2):
        for g in fs:
            out.append(f(x, g))
    return out


def itemgetters_and_callers(jit):
    class Box:
        pass

    b = Box()
    b.get = operator.itemgetter(0)
    f = jit(lambda x: b.get(x) * 2)
    x = two()
    out = [f(x), f(x)]
    b.get = operator.itemgetter(1)
    out += [f(x)]
    b.get = operator.methodcaller("add", 1)
    out += [f(x)]
    b.get = operator.methodcaller("add", 2)
    out += [f(x)]
    b.get = x.add if False else two().__add__
    out += [f(x)]
    b.get = two().__mul__
    return [*out, f(x)]


def closures_in_containers(jit):
    def make(k):
        return lambda x: x * k

    table = {"a": make(1.0), "b": make(2.0)}
    lst = [make(3.0), make(4.0)]
    f = jit(lambda x, name: table[name](x) + sum(g(x) for g in lst))
    x = two()
    out = [f(x, "a"), f(x, "b"), f(x, "a")]
    table["a"] = make(10.0)
    out += [f(x, "a")]
    lst[0] = make(-3.0)
    out += [f(x, "a"), f(x, "b")]
    lst.append(abs)
    out += [f(x, "a")]
    table["a"] = table["b"]
    return [*out, f(x, "a")]


def library_patched(jit):
    f = jit(lambda x: x * math.floor(2.5) + divmod(5, 2)[0])
    x = two()
    out = [f(x), f(x)]
    old = math.floor
    try:
        math.floor = lambda v: 100
        out += [f(x)]
    finally:
        math.floor = old
    out += [f(x)]

    old = builtins.divmod
    try:
        builtins.divmod = lambda v, w: (50, 1)
        r = f(x)
    finally:
        builtins.divmod = old
    return [*out, r, f(x)]


def global_shadows_builtin(jit):
    f = jit(lambda x: x * max(2, 3))
    x = two()
    out = [f(x), f(x)]
    globals()["max"] = lambda a, b: 100
    try:
        out += [f(x)]
    finally:
        del globals()["max"]
    return [*out, f(x)]


def globals_deleted(jit):
    g = globals()
    g["GK"] = 2.0
    f = jit(lambda x: x * GK)  # noqa: F821
    x = two()
    out = [f(x), f(x)]
    del g["GK"]
    out += [type(tried(f, x)).__name__]
    g["GK"] = 3.0
    out += [f(x)]
    g["GK"] = tj.ones(2)
    out += [f(x)]
    g["GK"].add_(4)
    out += [f(x)]
    del g["GK"]
    return out


def globals_written_by_helpers(jit):
    out = []

    def bump(x):
        global COUNT
        COUNT += 1
        return x * COUNT

    globals()["COUNT"] = 0
    f = jit(lambda x: bump(bump(x)))
    for _ in range(4):
        out += [f(two()), COUNT]
    globals()["COUNT"] = 100
    out += [f(two()), COUNT]
    globals()["COUNT"] = 1.5
    out += [f(two()), COUNT]
    del globals()["COUNT"]
    return out


def environment_read(jit):
    f = jit(lambda x: x * (2.0 if os.environ.get("TJ_TEST_K") else 3.0))
    x = two()
    out = [f(x), f(x)]
    os.environ["TJ_TEST_K"] = "1"
    out += [f(x)]
    del os.environ["TJ_TEST_K"]
    out += [f(x)]
    return out


def decorators_and_contexts(jit):
    log = []

    def logged(fn):
        @functools.wraps(fn)
        def inner(*a, **k):
            log.append(fn.__name__)
            return fn(*a, **k)

        return inner

    @contextlib.contextmanager
    def scaled(k):
        log.append(("enter", k))
        try:
            yield k
        finally:
            log.append(("exit", k))

    class Ctx:
        depth = 0

        def __enter__(self):
            Ctx.depth += 1
            return self

        def __exit__(self, *e):
            Ctx.depth -= 1

    @jit
    @logged
    def f(x, k):
        with scaled(k) as s, Ctx():
            return x * s + Ctx.depth

    out = []
    for k in (1.0, 2.0, 2.0, 3):
        out += [f(tj.ones(2), k), list(log), Ctx.depth]
        log.clear()
    return out


def args_and_kwargs(jit):
    @jit
    def f(*args, **kwargs):
        y = sum(args)
        for k, v in kwargs.items():
            y = y * v if k.startswith("m") else y + v
        return y, args, kwargs

    a, b = tj.ones(2), tj.full((2,), 3.0)
    out = []
    for args, kw in [
        ((a,), {}),
        ((a, b), {}),
        ((a, b), {"m": a, "z": b}),
        ((a, b), {"z": b, "m": a}),
        ((a, b), {"z": b, "m": 2.0}),
        ((a,), {"m1": b, "m2": b}),
        ((a, a), {"m1": a, "m2": a}),
        ((a, b), {"m": a, "z": b}),
    ]:
        y, ar, k = f(*args, **kw)
        out += [y, ar, k, [x is z for x, z in zip(ar, args)], list(k)]
    return out


def warns_of_its_caller(x):
    warnings.warn("deprecated", DeprecationWarning, stacklevel=2)
    return x * 2


def warnings_shown(jit):
    @jit
    def f(x, k):
        try:
            warnings.warn("told")
        except UserWarning:
            x = x * 100
        return warns_of_its_caller(x) * k

    @jit
    def g(x):
        if x.sum() > 0:
            warnings.warn(f"{x.sum().item():.1f} is positive")
        return x + 1

    out = []
    for action in ("ignore", "always", "default", "error", "always"):
        for k in (1.0, 2.0, -2.0):
            with warnings.catch_warnings(record=True) as told:
                warnings.resetwarnings()  # the filters of who runs this
                warnings.simplefilter("ignore" if action == "ignore" else "always")
                warnings.simplefilter(action, UserWarning)
                out += [f(tj.ones(2), k)]
                out += [g(tj.ones(2) * k)] if action != "error" else []
            out += [[(str(w.message), w.category.__name__, w.lineno) for w in told]]
    return out


PROGRAMS = programs_in(globals())
