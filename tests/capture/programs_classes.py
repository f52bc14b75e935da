"""Programs on classes whose methods, operators, bases and attributes change between calls."""

from __future__ import annotations

import contextlib
import dataclasses

import tracejit as tj
from tests.capture.program_list import programs_in
from tracejit import nn
from tracejit.nn import functional as F


def two():
    return tj.tensor([1.0, 2.0])


def operator_methods(jit):
    class V:
        def __init__(self, t):
            self.t = t

        def __add__(self, o):
            return V(self.t + o.t)

        def __mul__(self, k):
            return V(self.t * k)

        def __getitem__(self, i):
            return self.t[i]

        def __len__(self):
            return 2

        def __contains__(self, o):
            return True

        def __bool__(self):
            return False

        def __iter__(self):
            return iter([self.t, self.t])

        def __eq__(self, o):
            return True

        def __enter__(self):
            return 1.0

        def __exit__(self, *e):
            return None

        __hash__ = None

    @jit
    def f(x):
        a = V(x) + V(x * 2)
        b = a * 3.0
        y = b[0] + len(b) + (5 if 3 in b else 6) + (7 if b else 8) + sum(b) + (9 if a == b else 10)
        with a as k:
            y = y + k
        return y

    x = two()
    out = [f(x), f(x)]
    V.__add__ = lambda self, o: V(self.t - o.t)
    out += [f(x)]
    V.__mul__ = lambda self, k: V(self.t + k)
    out += [f(x)]
    V.__getitem__ = lambda self, i: self.t[i] * 100
    out += [f(x)]
    V.__len__ = lambda self: 33
    out += [f(x)]
    V.__contains__ = lambda self, o: False
    out += [f(x)]
    V.__bool__ = lambda self: True
    out += [f(x)]
    V.__iter__ = lambda self: iter([self.t])
    out += [f(x)]
    V.__eq__ = lambda self, o: False
    out += [f(x)]
    V.__enter__ = lambda self: 1000.0
    out += [f(x)]
    return out


def operators_of_arguments(jit):
    class V:
        def __init__(self, t):
            self.t = t

        def __matmul__(self, o):
            return self.t * o

        def __neg__(self):
            return self.t

        def __call__(self, o):
            return self.t + o

    f = jit(lambda v, x: (v @ x) + (-v) + v(x))
    x, v = two(), V(two())
    out = [f(v, x), f(v, x)]
    V.__matmul__ = lambda self, o: self.t - o
    out += [f(v, x)]
    V.__neg__ = lambda self: self.t * 50
    out += [f(v, x)]
    V.__call__ = lambda self, o: self.t * o * 7
    out += [f(v, x)]
    return out


def metaclass_and_class_calls(jit):
    class Meta(type):
        gain = 2.0

        def scale(cls, x):
            return x * cls.gain

        def __call__(cls, *a):
            o = super().__call__(*a)
            o.tag = Meta.gain
            return o

    class A(metaclass=Meta):
        def __init__(self, t):
            self.t = t

    f = jit(lambda x: A.scale(x) + A(x).t * A(x).tag)
    x = two()
    out = [f(x), f(x)]
    Meta.gain = 3.0
    out += [f(x)]
    A.gain = 4.0
    out += [f(x)]
    Meta.scale = lambda cls, x: x
    out += [f(x)]
    A.__init__ = lambda self, t: setattr(self, "t", t * 100)
    return [*out, f(x)]


def objects_made_inside(jit):
    class P:
        k = 2.0

        def __init__(self, t, n=1):
            self.t, self.n = t * self.k, n

        def total(self):
            return self.t.sum() * self.n

    @dataclasses.dataclass
    class D:
        t: object
        n: float = 3.0

    f = jit(lambda x: P(x).total() + D(x).n * D(x).t)
    x = two()
    out = [f(x), f(x)]
    P.k = 5.0
    out += [f(x)]
    P.__init__.__defaults__ = (10,)
    out += [f(x)]
    D.n = 100.0
    out += [f(x)]
    D.__init__.__defaults__ = (3.0,)
    out += [f(x)]
    P.total = lambda self: self.t.sum()
    return [*out, f(x)]


def tensor_methods_added(jit):
    tj.Tensor.twice = lambda self: self * 2
    try:
        f = jit(lambda x: x.twice())
        x = two()
        out = [f(x), f(x)]
        tj.Tensor.twice = lambda self: self * 22
        out += [f(x)]
        old = tj.Tensor.tanh
        g = jit(lambda x: x.tanh())
        out += [g(x)]
        tj.Tensor.tanh = lambda self: self * 1000
        out += [g(x)]
        tj.Tensor.tanh = old
        out += [g(x)]
    finally:
        del tj.Tensor.twice
    return out


def module_class_patched(jit):
    m = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with tj.no_grad():
        for p in m.parameters():
            p.fill_(-0.5)
    f = jit(m)
    g = jit(lambda x: m(x))
    x = two()
    out = [f(x), g(x)]
    old = nn.ReLU.forward
    try:
        nn.ReLU.forward = lambda self, x: x * 7
        out += [f(x), g(x)]
    finally:
        nn.ReLU.forward = old
    out += [f(x), g(x)]
    old = F.linear
    try:
        F.linear = lambda x, w, b=None: x
        out += [f(x), g(x)]
    finally:
        F.linear = old
    return [*out, f(x), g(x)]


def missing_then_there(jit):
    class Box:
        pass

    b = Box()

    @jit
    def f(x):
        try:
            return x * b.extra
        except AttributeError:
            return x

    @jit
    def g(x):
        with contextlib.suppress(NameError):
            return x * LATER  # noqa: F821
        return x

    @jit
    def h(x, d):
        try:
            return x * d["k"]
        except KeyError:
            return x

    x = two()
    out = [f(x), f(x), g(x), g(x), h(x, {}), h(x, {})]
    b.extra = 5.0
    globals()["LATER"] = 6.0
    out += [f(x), g(x), h(x, {"k": 7.0})]
    del b.extra, globals()["LATER"]
    return [*out, f(x), g(x), h(x, {})]


def class_attribute_appears(jit):
    class A:
        pass

    class B(A):
        def go(self, x):
            return x * getattr(self, "k", 1.0)

    b = B()
    f = jit(lambda x: b.go(x))
    x = two()
    out = [f(x), f(x)]
    A.k = 2.0
    out += [f(x)]
    B.k = 3.0
    out += [f(x)]
    b.k = 4.0
    out += [f(x)]
    del b.k, B.k, A.k
    return [*out, f(x)]


def mro_changes(jit):
    class A:
        def go(self, x):
            return x + 1

    class M(A):
        pass

    class C(M):
        def go(self, x):
            return super().go(x) * 2

    c = C()
    f = jit(lambda x: c.go(x))
    x = two()
    out = [f(x), f(x)]
    M.go = lambda self, x: x + 100
    out += [f(x)]
    del M.go

    class A2:
        def go(self, x):
            return x + 7

    out += [f(x)]
    M.__bases__ = (A2,)
    out += [f(x)]
    A2.go = lambda self, x: x
    return [*out, f(x)]


def super_attributes(jit):
    class A:
        k = 2.0

        @property
        def gain(self):
            return self.k

        @classmethod
        def make(cls, x):
            return x * cls.k

    class B(A):
        @property
        def gain(self):
            return super().gain * 10

        @classmethod
        def make(cls, x):
            return super().make(x) + 1

    b = B()
    f = jit(lambda x: x * b.gain + b.make(x))
    x = two()
    out = [f(x), f(x)]
    A.k = 3.0
    out += [f(x)]
    A.gain = property(lambda self: 0.5)
    out += [f(x)]
    A.make = classmethod(lambda cls, x: x * 0)
    return [*out, f(x)]


PROGRAMS = programs_in(globals())
