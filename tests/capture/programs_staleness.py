"""Programs on Python state that changes between calls: globals, closures, attributes, arguments."""

from __future__ import annotations

import collections
import math

import tracejit as tj
from tests.capture.program_list import programs_in

SCALE = 2.0
TABLE = {"a": 1.0, "b": [1, 2]}
WEIGHT = tj.ones(2)


def global_number(jit):
    global SCALE
    f = jit(lambda x: x * SCALE)
    out = []
    for value in (2.0, 3.0, -0.0, 0.0, float("inf"), 2, True):
        SCALE = value
        out.append(f(tj.tensor([1.0, -1.0])))
    SCALE = 2.0
    return out


def global_container(jit):
    @jit
    def f(x):
        return x * TABLE["a"] + TABLE["b"][1]

    x = tj.ones(2)
    out = [f(x)]
    TABLE["a"] = 5.0
    out.append(f(x))
    TABLE["b"][1] = 7
    out.append(f(x))
    TABLE["b"] = [0, 0]
    out.append(f(x))
    TABLE.update(a=1.0, b=[1, 2])
    return out


def global_tensor_mutated_and_rebound(jit):
    global WEIGHT
    f = jit(lambda x: x * WEIGHT)
    out = [f(tj.ones(2))]
    WEIGHT.add_(1)
    out.append(f(tj.ones(2)))
    WEIGHT = tj.full((2,), 9.0)
    out.append(f(tj.ones(2)))
    WEIGHT = tj.ones(2)
    return out


def closure_rebound(jit):
    k, w = 1.0, tj.ones(2)

    @jit
    def f(x):
        return x * k + w

    out = [f(tj.ones(2))]
    k = 4.0
    out.append(f(tj.ones(2)))
    w = tj.zeros(2)
    out.append(f(tj.ones(2)))
    w.add_(3)
    out.append(f(tj.ones(2)))
    return out


def nonlocal_counter(jit):
    count = 0

    @jit
    def f(x):
        nonlocal count
        count += 1
        return x * count

    return [f(tj.ones(1)), f(tj.ones(1)), f(tj.ones(1)), count]


def helper_function_replaced(jit):
    class Box:
        @staticmethod
        def act(x):
            return x + 1

    f = jit(lambda x: Box.act(x))
    out = [f(tj.ones(1))]
    Box.act = staticmethod(lambda x: x * 100)
    out.append(f(tj.ones(1)))
    return out


def nested_helper_reads_state(jit):
    settings = {"scale": 2.0}

    def inner(x):
        return x * settings["scale"]

    def outer(x):
        return inner(x) + 1

    f = jit(lambda x: outer(x))
    out = [f(tj.ones(1))]
    settings["scale"] = -2.0
    out.append(f(tj.ones(1)))
    return out


def object_attribute(jit):
    class Config:
        gain = 2.0

        def __init__(self):
            self.bias = 1.0
            self.name = "plain"

    config = Config()

    @jit
    def f(x):
        y = x * config.gain + config.bias
        return -y if config.name == "negative" else y

    out = [f(tj.ones(1))]
    config.bias = 3.0
    out.append(f(tj.ones(1)))
    config.name = "negative"
    out.append(f(tj.ones(1)))
    Config.gain = 10.0
    out.append(f(tj.ones(1)))
    config.gain = 1.0
    out.append(f(tj.ones(1)))
    return out


def object_as_argument(jit):
    Options = collections.namedtuple("Options", "scale shift")
    f = jit(lambda x, o: x * o.scale + o.shift)
    return [
        f(tj.ones(2), Options(s, b))
        for s, b in ((1.0, 2.0), (3.0, 2.0), (3.0, tj.ones(2)), (1.0, 2.0))
    ]


def dynamic_attribute_name(jit):
    class Box:
        def __init__(self):
            self.first, self.second = 1.0, 2.0

    box, which = Box(), ["first"]
    f = jit(lambda x: x * getattr(box, which[0]))
    out = [f(tj.ones(1))]
    box.first = 5.0
    out.append(f(tj.ones(1)))
    which[0] = "second"
    out.append(f(tj.ones(1)))
    return out


def property_read(jit):
    class Box:
        def __init__(self):
            self._k = 2.0

        @property
        def k(self):
            return self._k * 10

    box = Box()
    f = jit(lambda x: x * box.k)
    out = [f(tj.ones(1))]
    box._k = 3.0
    out.append(f(tj.ones(1)))
    return out


def has_attribute(jit):
    class Box:
        pass

    box = Box()
    f = jit(lambda x: x * 2 if hasattr(box, "extra") else x)
    out = [f(tj.ones(1))]
    box.extra = 1
    out.append(f(tj.ones(1)))
    del box.extra
    out.append(f(tj.ones(1)))
    return out


def float_argument(jit):
    f = jit(lambda x, k: x * k + k * 2)
    return [f(tj.ones(2), k) for k in (1.0, 2.5, -0.0, float("nan"), float("inf"), 3)]


def float_argument_branched_on(jit):
    @jit
    def f(x, loss):
        return x * 2 if loss < 5.0 else x * 3

    return [f(tj.ones(1), k) for k in (1.0, 9.0, 4.999, 5.0, 1.0)]


def int_and_bool_arguments(jit):
    @jit
    def f(x, n, flag=False, *, mode="sum"):
        for _ in range(n):
            x = x + 1
        x = x if flag else -x
        return x.sum() if mode == "sum" else x.mean()

    x = tj.arange(3.0)
    return [f(x, 1), f(x, 2), f(x, 2, True), f(x, 2, flag=True, mode="mean"), f(n=0, x=x), f(x, 1)]


def containers_as_arguments(jit):
    @jit
    def f(xs, options):
        total = xs[0] * options["k"]
        for x in xs[1:]:
            total = total + x
        return {"total": total, "n": len(xs)}

    a, b = tj.ones(2), tj.arange(2.0)
    return [
        f([a, b], {"k": 1.0}),
        f([a, b, b], {"k": 1.0}),
        f([b, a], {"k": 3.0}),
        f((a,), {"k": 1.0}),
    ]


def math_functions(jit):
    f = jit(lambda x, k: x * math.sqrt(k) + math.pi)
    return [f(tj.ones(1), 4.0), f(tj.ones(1), 9.0)]


def tensor_made_inside(jit):
    f = jit(lambda x, k: x + tj.tensor([1.0, k]) + tj.arange(2) + tj.full((2,), k))
    return [f(tj.zeros(2), 3.0), f(tj.zeros(2), 4.0)]


def method_of_two_instances(jit):
    class Scaler:
        def __init__(self, k):
            self.k = tj.tensor(k)

        @jit
        def __call__(self, x):
            return x * self.k

    a, b = Scaler(2.0), Scaler(3.0)
    out = [a(tj.ones(1)), b(tj.ones(1))]
    a.k = tj.tensor(7.0)
    return [*out, a(tj.ones(1)), b(tj.ones(1))]


def captured_inside_captured(jit):
    inner = jit(lambda x: x * 2)
    outer = jit(lambda x: inner(x) + 1)
    return [outer(tj.ones(1)), inner(tj.ones(1)), outer(tj.zeros(3))]


def attribute_of_a_tensor(jit):
    f = jit(lambda x: x * x.factor)
    x = tj.ones(2)
    x.factor = 3.0
    out = [f(x)]
    x.factor = 4.0
    return [*out, f(x)]


def lambda_made_anew(jit):
    f = jit(lambda x, g: g(x))
    out = []
    for k in (1.0, 2.0, 3.0):
        out.append(f(tj.ones(1), lambda x: x * k))  # noqa: B023
    out.append(f(tj.ones(1), lambda x: x - 7))
    return out


def default_argument(jit):
    @jit
    def f(x, ks=[1.0]):  # noqa: B006
        ks.append(2.0)
        return x * sum(ks)

    return [f(tj.ones(1)), f(tj.ones(1)), f(tj.ones(1), [5.0])]


def instance_method_patched(jit):
    class Box:
        def act(self, x):
            return x + 1

    box = Box()
    f = jit(lambda x: box.act(x))
    out = [f(tj.ones(1))]
    box.act = lambda x: x * 50
    out.append(f(tj.ones(1)))
    del box.act
    Box.act = lambda self, x: x - 1
    return [*out, f(tj.ones(1))]


def which_objects_are_one(jit):
    class Holder:
        def __init__(self):
            self.a, self.b = tj.tensor([1.0]), tj.tensor([2.0])
            self.kept = [tj.tensor([3.0]), tj.tensor([4.0])]

    o = Holder()

    def compared(x, y):
        if x is o.kept[1]:
            return x * 100
        if o.a is o.b:
            return x * 7
        return x * 3 if x is y else x + y + o.a + o.b + o.kept[0]

    def found(x, y):
        return [k for k, t in enumerate([x, y, o.a]) if t is y], x * 2

    def counted(x, y):
        return len({x, y, o.b}), {x: 1}.get(y), id(x) == id(y), x + 1

    def shared(x, y):
        o.kept.append(o.a)
        return o.a, o.kept is x

    def program(way):
        f, out = jit(way), []
        a, b = tj.tensor([5.0]), tj.tensor([6.0])
        for k in range(12):
            pairs = [(a, b), (b, a), (a, a), (o.kept[1], a), (a, o.kept[1]), (b, o.a), (b, b)]
            out += [f(*pair) for pair in (pairs[0], pairs[1], pairs[k % 7], pairs[0])]
            if k == 7:
                o.a, before = o.b, o.a
            elif k == 9:
                o.a = before
            o.kept = [o.a if k % 2 else tj.tensor([3.0]), o.kept[1]]
        return out

    return [program(way) for way in (compared, found, counted, shared)]


PROGRAMS = programs_in(globals())
