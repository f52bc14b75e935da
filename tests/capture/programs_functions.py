"""Programs on functions that change between calls: defaults, code, attributes, wrappers, caches."""

from __future__ import annotations

import functools
import types

import tracejit as tj
from tests.capture.program_list import programs_in
from tracejit.nn import functional as F


def two():
    return tj.tensor([1.0, 2.0])


def no_grad_wrappers(jit):
    class Box:
        pass

    b = Box()
    k = 2.0
    b.act = tj.no_grad()(lambda x: x + 1)
    f = jit(lambda x: b.act(x))
    x = two()
    out = [f(x), f(x)]
    b.act = tj.no_grad()(lambda x: x * 10)
    out += [f(x)]
    b.act = tj.enable_grad()(lambda x: x * 10)
    out += [f(x.requires_grad_())]
    b.act = tj.no_grad()(lambda x: x * k)
    out += [f(x), f(x)]
    k = 5.0
    out += [f(x)]
    b.act = tj.exp
    out += [f(x)]
    b.act = tj.neg
    out += [f(x)]
    b.act = F.relu
    out += [f(x)]
    b.act = F.silu
    out += [f(x)]
    b.act = tj.Tensor.exp
    out += [f(x)]
    b.act = tj.Tensor.cos
    out += [f(x)]
    b.act = functools.partial(tj.mul, 3.0)
    out += [f(x)]
    b.act = functools.partial(tj.add, 3.0)
    return [*out, f(x)]


def wrapped_functions(jit):
    def deco(k):
        def outer(fn):
            @functools.wraps(fn)
            def inner(*a):
                return fn(*a) * k

            return inner

        return outer

    class Box:
        pass

    b = Box()
    b.f = deco(2.0)(lambda x: x + 1)
    f = jit(lambda x: b.f(x))
    x = two()
    out = [f(x), f(x)]
    b.f = deco(3.0)(lambda x: x + 1)
    out += [f(x)]
    b.f = deco(3.0)(lambda x: x - 1)
    out += [f(x)]
    b.f = b.f.__wrapped__
    out += [f(x)]
    b.f = deco(2.0)(deco(5.0)(lambda x: x))
    return [*out, f(x)]


def functions_with_attributes(jit):
    def helper(x):
        helper.calls += 1
        return x * helper.k

    helper.calls, helper.k = 0, 2.0
    f = jit(lambda x: helper(x))
    x = tj.ones(2)
    out = [f(x), f(x), helper.calls]
    helper.k = 4.0
    out += [f(x), helper.calls]
    helper.k = tj.ones(2)
    out += [f(x), helper.calls, f(x)]
    return out


def defaults_change(jit):
    def f(x, k=2.0, *, b=None, seen=[]):  # noqa: B006
        seen.append(len(seen))
        return x * k + (0 if b is None else b) + len(seen)

    g = jit(f)
    x = tj.ones(2)
    out = [g(x), g(x), g(x, 3.0), g(x, b=x)]
    f.__defaults__ = (5.0,)
    out.append(g(x))
    f.__kwdefaults__["b"] = x
    out.append(g(x))
    f.__kwdefaults__ = {"b": None, "seen": [1, 2, 3]}
    out += [g(x), g(x)]
    return out


def code_replaced(jit):
    def f(x):
        return x * 2

    def g(x):
        return x + 10

    h = jit(f)
    x = tj.ones(2)
    out = [h(x), h(x)]
    f.__code__ = g.__code__
    out += [h(x), h(x), f(x)]
    return out


def function_code_with_other_parameters(jit):
    def f(x):
        return x * 2

    def g(x, k=3.0):
        return x * k

    h = jit(f)
    x = two()
    out = [h(x), h(x)]
    f.__code__, f.__defaults__ = g.__code__, g.__defaults__
    out += [h(x), h(x, 5.0), h(x, k=6.0), h(x)]
    return out


def callable_object_gets_another_call(jit):
    class A:
        def __call__(self, x):
            return x

    a = A()
    f = jit(a)
    x = two()
    out = [f(x), f(x)]
    A.__call__ = lambda self, x, k=2.0: x * k
    return [*out, f(x), f(x, 3.0)]


def same_code_other_globals(jit):
    def body(x):
        return x * GAIN  # noqa: F821

    a = types.FunctionType(body.__code__, {"GAIN": 2.0})
    b = types.FunctionType(body.__code__, {"GAIN": 3.0})

    class Box:
        pass

    box = Box()
    box.f = a
    f = jit(lambda x: box.f(x))
    x = two()
    out = [f(x), f(x)]
    box.f = b
    out += [f(x), f(x)]
    box.f = a
    return [*out, f(x)]


def redefined_function(jit):
    space = {"tj": tj}
    exec("def g(x):\n    return x * 2\n", space)
    f = jit(lambda x: space["g"](x))
    x = tj.ones(2)
    out = [f(x), f(x)]
    exec("def g(x):\n    return x * 3\n", space)
    out += [f(x), f(x)]
    g = space["g"]

    def other(x):
        return x - 1

    g.__code__ = other.__code__
    out += [f(x), f(x)]
    return out


def cached_functions(jit):
    made = []

    @functools.cache
    def table(n):
        made.append(n)
        return tj.arange(float(n))

    @functools.cache
    def gain(n):
        return n * 2.0

    @jit
    def f(x, n):
        return x.sum() * table(n) * gain(n)

    out = []
    for n in (3, 3, 4, 3, 4):
        out += [f(tj.ones(2), n), list(made)]
    table(3).fill_(7.0)
    out.append(f(tj.ones(2), 3))
    table.cache_clear()
    out += [f(tj.ones(2), 3), list(made)]
    return out


def cached_with_floats(jit):
    made = []

    @functools.lru_cache(None)
    def gain(k):
        made.append(k)
        return k * 2.0

    f = jit(lambda x, k: x * gain(k))
    x = two()
    out = []
    for k in (1.5, 2.5, 1.5, 3.5, 2.5):
        out += [f(x, k), list(made), [type(m).__name__ for m in made]]
    return [*out, gain(1.5), type(gain(3.5)).__name__, list(made), gain.cache_info()[:2]]


def cached_result_is_changed(jit):
    @functools.lru_cache(None)
    def table(n):
        return [n, n + 1.0]

    f = jit(lambda x: x * table(3)[1])
    x = two()
    out = [f(x), f(x)]
    table(3)[1] = 100.0
    return [*out, f(x), f(x)]


def cached_function_with_an_effect(jit):
    log = []

    @functools.lru_cache(None)
    def gain():
        log.append("ran")
        return 2.0

    f = jit(lambda x: x * gain())
    x = two()
    out = [f(x), list(log), f(x), f(x), list(log)]
    gain.cache_clear()
    return [*out, f(x), f(x), list(log)]


def cached_with_sizes(jit):
    made = []

    @functools.lru_cache(None)
    def mask(n):
        made.append(type(n).__name__)
        return tj.ones(n, n)

    f = jit(lambda x: x * mask(x.shape[0]))
    out = [f(tj.ones(n, n)) for n in (2, 3, 2, 4, 3)]
    mask(3).zero_()
    out += [f(tj.ones(3, 3)), *mask.cache_info()]
    mask.cache_clear()
    return [*out, f(tj.ones(3, 3)), *made]


def cached_by_type_with_sizes(jit):
    @functools.lru_cache(None, typed=True)
    def positions(rows, columns):
        return tj.arange(rows * columns).view(rows, columns)

    f = jit(lambda x: x + positions(*x.shape))
    out = [f(tj.ones(*shape)) for shape in ((2, 3), (2, 3), (3, 3))]
    positions(2, 3).zero_()
    return [*out, f(tj.ones(2, 3)), *positions.cache_info()]


def cached_method_and_property(jit):
    class T:
        def __init__(self):
            self.n, self.log = 2, []

        @functools.lru_cache(None)  # noqa: B019
        def table(self, k):
            self.log.append(k)
            return [k, self.n]

        @functools.cached_property
        def w(self):
            self.log.append("w")
            return tj.ones(2) * self.n

    t = T()
    f = jit(lambda x, k: x * t.table(k)[1] + t.w)
    x = two()
    out = []
    for k in (1, 1, 2, 1):
        out += [f(x, k), list(t.log)]
    t.n = 5
    out += [f(x, 3), f(x, 1), list(t.log)]
    t.table(1)[1] = 100
    del t.w
    return [*out, f(x, 1), list(t.log)]


PROGRAMS = programs_in(globals())
