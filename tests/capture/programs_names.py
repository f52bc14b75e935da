"""Programs whose branches and loops bind names that Python treats in a way of their own: private
ones of a class, those that a comprehension or an annotation reads.
"""

import tracejit as tj
from tests.capture.program_inputs import tried
from tests.capture.program_list import programs_in


def _vector(sign=1.0):
    return tj.tensor([1.0, 2.0, 3.0]) * sign


def _rows(n):
    return tj.arange(2.0 * n).reshape(n, 2) / 4


class Private:
    def branch(self, x):
        __y = x
        if x.sum() > 0:
            __y = x * 2
        else:
            __y = x - 1
        return __y + 1

    def unbound(self, x):
        if x.sum() > 0:
            __v = x
        return __v

    def loop(self, x):
        __s, __n = x[0] * 0, 0
        for __i in range(x.shape[0]):
            __s = __s + x[__i] * __i
            __n = __n + 2
        return __s, __n, __i

    def open_loop(self, x):
        __x = x
        while __x.sum() < 50:
            __x = __x * 2 + 1
        return __x


def private_name_in_a_branch(jit):
    branch, unbound, p = jit(Private.branch), jit(Private.unbound), Private()
    return [tried(f, p, x) for f in (branch, unbound) for x in (_vector(), _vector(-1), _vector())]


def private_name_in_a_loop(jit):
    f, g, p = jit(Private.loop), jit(Private.open_loop), Private()
    return [f(p, _rows(n)) for n in (20, 20, 3, 24)] + [g(p, _vector(k)) for k in (1, 100, 3)]


def comprehension_over_its_own_name(jit):
    @jit
    def f(x):
        if x.sum() > 0:
            parts = (x, x * 2)
        else:
            parts = (x - 1, x * 3)
        return [parts + 1 for parts in parts]

    @jit
    def g(x):
        s = x[0] * 0
        for i in range(x.shape[0]):
            s = s + x[i]
            last = x[i] * 2
        return s, [i + 1 for i in range(i)], [last * 2 for last in last]

    return [f(_vector(k)) for k in (1, -1, 1)] + [g(_rows(n)) for n in (20, 20, 24, 3)]


def annotation_of_a_nested_function(jit):
    @jit
    def f(x):
        if x.sum() > 0:
            kind, y = "kind", x
        else:
            kind, y = "kind", -x

        def g(z: kind) -> kind:
            return z * 2

        return g(y), g.__annotations__["z"]

    return [f(_vector(k)) for k in (1, -1, 1)]


def assertion_error_is_a_name_of_the_function(jit):
    @jit
    def f(x):
        AssertionError = ValueError
        assert x.sum() > 0, "must be up"
        return x, AssertionError.__name__

    return [tried(f, _vector(k)) for k in (-1, 1, -1)]


PROGRAMS = programs_in(globals())
