"""Programs on methods, properties and attributes that are replaced between calls."""

from __future__ import annotations

import functools

import tracejit as tj
from tests.capture.program_list import programs_in
from tracejit import nn
from tracejit.nn import functional as F


def two():
    return tj.tensor([1.0, 2.0])


def getattr_hooks(jit):
    class Lazy:
        def __init__(self):
            self.store = {"a": tj.ones(2), "k": 2.0}

        def __getattr__(self, name):
            try:
                return self.__dict__["store"][name]
            except KeyError:
                raise AttributeError(name) from None

    box = Lazy()
    f = jit(lambda x: x * box.a * box.k)
    x = tj.ones(2)
    out = [f(x), f(x)]
    box.store["k"] = 5.0
    out.append(f(x))
    box.store["a"] = tj.full((2,), 2.0)
    out.append(f(x))
    box.a = tj.zeros(2)
    out.append(f(x))
    del box.a
    del box.store["a"]
    try:
        f(x)
    except AttributeError as e:
        out.append(e)
    return out


def class_attributes(jit):
    class Base:
        k = 2.0

        def act(self, x):
            return x * self.k

    class Child(Base):
        pass

    o = Child()
    f = jit(lambda x: o.act(x))
    x = tj.ones(2)
    out = [f(x), f(x)]
    Base.k = 3.0
    out.append(f(x))
    Child.k = 4.0
    out.append(f(x))
    o.k = 5.0
    out.append(f(x))
    del o.k
    out.append(f(x))
    Child.act = lambda self, x: x - self.k
    out.append(f(x))
    o.act = lambda x: x + 100
    out.append(f(x))
    del o.act, Child.act, Child.k
    out.append(f(x))
    o.__class__ = type("Other", (Base,), {"k": 11.0})
    out.append(f(x))
    return out


def properties_and_descriptors(jit):
    class Doubling:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, o, t=None):
            return getattr(o, self.name) * 2

        def __set__(self, o, v):
            setattr(o, self.name, v)

    class Box:
        w = Doubling()

        def __init__(self):
            self.w = tj.ones(2)
            self._g = 3.0

        @property
        def gain(self):
            return self._g

        @gain.setter
        def gain(self, v):
            self._g = v * 2

        @functools.cached_property
        def heavy(self):
            return self.w.sum() * self._g

    box = Box()

    @jit
    def f(x):
        y = x * box.w * box.gain
        box.gain = box.gain + 1
        return y

    h = jit(lambda x: x * box.heavy)
    x = tj.ones(2)
    out = [f(x), box._g, f(x), box._g, f(x)]
    box.w = tj.full((2,), 4.0)
    out += [f(x), box._w, h(x), h(x), sorted(vars(box))]
    del box.heavy
    out += [h(x), h(x)]
    box.w = tj.full((2,), 5.0)
    out += [h(x)]
    return out


def callable_objects(jit):
    class Scale:
        def __init__(self, k):
            self.k, self.calls = k, 0

        def __call__(self, x):
            self.calls += 1
            return x * self.k

    a = Scale(2.0)
    f, g = jit(a), jit(lambda x, fn: fn(fn(x)))
    x = tj.ones(2)
    out = [f(x), f(x), a.calls]
    a.k = 3.0
    out += [
        f(x),
        a.calls,
        g(x, a),
        g(x, a),
        a.calls,
        g(x, Scale(tj.ones(2))),
        g(x, abs),
        g(x, tj.exp),
        g(x, tj.neg),
    ]
    Scale.__call__ = lambda self, x: x + self.k
    out += [f(x), g(x, a), a.calls]
    return out


def match_statement(jit):
    from dataclasses import dataclass

    @dataclass
    class Add:
        v: object

    @dataclass
    class Mul:
        v: object

    def run(op, x):
        match op:
            case Add(v=v):
                return x + v
            case Mul(v=v):
                return x * v
            case [first, *rest]:
                return run(first, x) + len(rest)
            case {"op": o}:
                return run(o, x)
            case None:
                return x
            case int(k) if k > 3:
                return x - k
            case _:
                return x * 0

    f = jit(lambda op, x: run(op, x))
    x = two()
    ops = [
        Add(1.0),
        Mul(2.0),
        Add(3.0),
        [Add(1.0), 2, 3],
        {"op": Mul(x)},
        None,
        5,
        2,
        "s",
        Add(x),
        Mul(4.0),
    ]
    return [f(o, x) for o in ops + ops]


def partial_method(jit):
    class A:
        k = 2.0

        def scale(self, x, k):
            return x * k * self.k

        double = functools.partialmethod(scale, k=2.0)

    a = A()
    f = jit(lambda x: a.double(x))
    x = two()
    out = [f(x), f(x)]
    A.k = 3.0
    out += [f(x)]
    A.double = functools.partialmethod(A.scale, k=7.0)
    out += [f(x)]
    A.scale = lambda self, x, k: x
    return [*out, f(x)]


def total_ordering_and_sorting(jit):
    class P:
        def __init__(self, t, key):
            self.t, self.key = t, key

        def __lt__(self, o):
            return self.key < o.key

    ps = [P(two() * i, k) for i, k in enumerate((3, 1, 2))]
    f = jit(lambda x: [p.t + x for p in sorted(ps)] + [max(ps).t])
    x = two()
    out = [f(x), f(x)]
    ps[0].key = -1
    out += [f(x)]
    P.__lt__ = lambda self, o: self.key > o.key
    return [*out, f(x)]


def slots_and_properties(jit):
    class A:
        __slots__ = ("_k", "w")

        def __init__(self):
            self._k = 1.0
            self.w = two()

        @property
        def k(self):
            return self._k

        @k.setter
        def k(self, v):
            self._k = v + 1

    a = A()

    @jit
    def f(x):
        a.k = a.k * 2
        a.w = a.w + x
        return a.w * a.k

    x = two()
    out = []
    for _ in range(4):
        out += [f(x), a._k, a.w]
    del a.w
    try:
        f(x)
    except AttributeError as e:
        out.append(str(e))
    a.w = x
    return [*out, f(x), a._k]


def bound_methods(jit):
    class Box:
        def __init__(self, k):
            self.k = k
            self.f = jit(self.step)

        def step(self, x):
            self.k += 1
            return x * self.k

        @jit
        def direct(self, x):
            return x + self.k

        @classmethod
        def make(cls, x):
            return x * cls.factor

        factor = 2.0

        @staticmethod
        def still(x):
            return x * 7

    out = []
    a, b = Box(1.0), Box(tj.ones(2) * 5)
    x = tj.ones(2)
    for _ in range(3):
        out += [a.f(x), b.f(x), a.direct(x), b.direct(x), a.k, b.k]
    m, s = jit(Box.make), jit(Box.still)
    out += [m(x), s(x)]
    Box.factor = 9.0
    out += [m(x), s(x)]
    Box.step = lambda self, x: x - 1
    out += [a.f(x)]
    b.k = 3
    out += [b.direct(x), a.direct(x)]
    return out


def monkeypatched(jit):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(2, 2)

        def forward(self, x):
            return F.relu(self.l(x))

    m = M()
    with tj.no_grad():
        m.l.weight.fill_(0.5)
        m.l.bias.fill_(0.25)
    f = jit(lambda x: m(x))
    x = tj.tensor([[1.0, -3.0]])
    out = [f(x), f(x)]
    old = F.relu
    try:
        F.relu = lambda x: x * 100
        out += [f(x), f(x)]
    finally:
        F.relu = old
    out.append(f(x))
    old = nn.Linear.forward
    try:
        nn.Linear.forward = lambda self, x: x
        out += [f(x), f(x)]
    finally:
        nn.Linear.forward = old
    out.append(f(x))
    old = tj.Tensor.relu
    m.l.forward = lambda x: x * 5
    out.append(f(x))
    return out


def methods_of_library_objects_replaced(jit):
    def trained():
        model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
        with tj.no_grad():
            model[0].weight.copy_(tj.tensor([[0.5, -1.0], [2.0, 0.25]]))
            model[0].bias.fill_(0.5)
        optimizer = tj.optim.SGD(model.parameters(), lr=0.1)
        return model, optimizer, tj.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

    def replaced(change):
        """Steps before a method of an object is replaced, after that, and when it is back."""
        model, optimizer, schedule = trained()
        normal = tj.distributions.Normal(tj.zeros(2), tj.ones(2))
        seen = []

        @jit
        def step(x):
            optimizer.zero_grad()
            loss = model(x).pow(2).sum() - normal.log_prob(x).sum()
            loss.backward()
            optimizer.step()
            schedule.step()
            return loss, len(model.state_dict()), model.train(), [*model.parameters()][0] * 2

        x, out = tj.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.0]]), []
        for k in range(4):
            if k == 2:
                owner, name, other = change(model, optimizer, schedule, normal, seen)
                setattr(owner, name, other)
            if k == 3:
                delattr(owner, name)
            loss, size, trained_model, doubled = step(x)
            rates = [group["lr"] for group in optimizer.param_groups]
            out += [loss, size, trained_model is model, doubled, rates, list(seen),
                    [p * 1 for p in nn.Module.parameters(model)]]
        return out

    return [replaced(change) for change in (
        lambda m, o, s, n, seen: (o, "step", lambda closure=None: seen.append("step")),
        lambda m, o, s, n, seen: (s, "get_lr", lambda: [0.25]),
        lambda m, o, s, n, seen: (m, "state_dict", dict),
        lambda m, o, s, n, seen: (m, "parameters", lambda: iter([tj.ones(1)])),
        lambda m, o, s, n, seen: (m[1], "train", lambda mode=True: seen.append(mode)),
        lambda m, o, s, n, seen: (n, "log_prob", lambda x: x * 3),
    )]


PROGRAMS = programs_in(globals())
