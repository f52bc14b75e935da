"""Programs on objects of the user's that were found to be stale or wrong: keys and their order,
equal values that differ, members, subclasses of containers, code that Python makes."""

from __future__ import annotations

import bisect
import collections
import dataclasses
import enum
import heapq
import math
import random

import tracejit as tj
from tests.capture import program_inputs
from tests.capture.program_list import programs_in

NUMBER = 2.0


class Box:
    """Anything."""

    def __init__(self, **held):
        self.__dict__.update(held)


def one():
    return tj.ones(2)


def order_of_keys_of_any_kind(jit):
    first, second = Box(v=1.0), Box(v=2.0)
    tables = [
        {(1, 2): 2.0, (3, 4): 3.0},
        {None: 2.0, 1.5: 3.0},
        {first: 2.0, second: 3.0},
        {tj.nn.ReLU(): 2.0, tj.nn.Tanh(): 3.0},
        {int: 2.0, str: 3.0},
        {tj.float32: 2.0, tj.int64: 3.0},
    ]
    out = []
    for table in tables:
        f = jit(lambda x, t: sum((k + 1) * v * x for k, v in enumerate(t.values())))
        out += [f(one(), table), f(one(), table)]
        key = next(iter(table))
        table[key] = table.pop(key)
        out.append(f(one(), table))
    return out


def keys_that_are_equal_and_differ(jit):
    table, numbers = {1: 2.0}, {1, 2}
    f = jit(lambda x: x * (2 if type(next(iter(table))) is int else 3))
    g = jit(lambda x: x * sum(n if type(n) is int else 100 for n in numbers))
    out = []
    for key in (1, 1, True, 1.0):
        table.clear()
        table[key] = 2.0
        numbers.discard(1)
        numbers.add(key)
        out += [f(one()), g(one())]
    return out


def key_that_is_changed(jit):
    key = Box(v=1.0)
    table = {key: 2.0}
    f = jit(lambda x: sum(x * v + k.v for k, v in table.items()))
    out = [f(one()), f(one())]
    key.v = 5.0
    return [*out, f(one())]


def values_that_are_equal_and_differ(jit):
    box = Box(r=range(0, 3, 2), c=complex(0.0, 0.0))
    f = jit(lambda x: x * box.r.stop)
    g = jit(lambda x: x * math.copysign(1.0, box.c.imag))
    out = []
    for box.r in (range(0, 3, 2), range(0, 4, 2), range(0), range(5, 5)):
        out.append(f(one()))
    for box.c in (0j, complex(0.0, -0.0), complex(-0.0, 0.0)):
        out.append(g(one()))
    return out


def members_have_state(jit):
    class Kind(enum.Enum):
        A = [2.0]

        @property
        def weight(self):
            return self.w * 2

    Kind.A.w = 1.0
    f = jit(lambda x: x * Kind.A.value[0] * Kind.A.weight)
    out = [f(one()), f(one())]
    Kind.A.value[0] = 5.0
    out.append(f(one()))
    Kind.A.w = 3.0
    return [*out, f(one())]


def subclasses_of_builtins_have_state(jit):
    class Items(list):
        scale = 1.0

    class Table(dict):
        other = 2.0

        def __missing__(self, key):
            return self.other

        def __getattr__(self, name):
            return self[name]

    class Text(str):
        pass

    items, table, box = Items([1.0]), Table(w=3.0), Box(t=Text("a"))
    box.t.w = 2.0
    fs = [
        jit(lambda x: x * items[0] * items.scale),
        jit(lambda x: x * table["missing"]),
        jit(lambda x: x * table.w),
        jit(lambda x: x * box.t.w),
    ]
    out = []
    for k in range(5):
        if k == 2:
            items.scale, table.other, box.t.w = 3.0, 4.0, 5.0
        if k == 3:
            del items.scale
            Items.scale, table.__dict__["w"] = 7.0, 8.0
            box.t = Text("a")
            box.t.w = 9.0
        out += [f(one()) for f in fs]
    return out


def default_factory_replaced(jit):
    table = collections.defaultdict(lambda: 2.0)
    f = jit(lambda x: x * table["z"])
    out = []
    for factory in (lambda: 2.0, lambda: 2.0, lambda: 9.0):
        table.clear()
        table.default_factory = factory
        out += [f(one()), dict(table)]
    return out


def globals_by_their_dict(jit):
    f = jit(lambda x: x * globals()["NUMBER"])
    out = []
    for number in (2.0, 2.0, 5.0):
        globals()["NUMBER"] = number
        out.append(f(one()))
    return out


def names_imported_by_a_call(jit):
    @jit
    def f(x):
        from tests.capture.program_inputs import MANY

        return x * MANY

    before, out = program_inputs.MANY, []
    for number in (before, before, 5):
        program_inputs.MANY = number
        out.append(f(one()))
    program_inputs.MANY = before
    return out


def methods_that_dataclasses_are_given(jit):
    @dataclasses.dataclass(order=True)
    class Point:
        a: float
        w: list

    p, q = Point(1.0, []), Point(2.0, [])
    fs = [
        jit(lambda x: x * (2 if p == q else 3)),
        jit(lambda x: x * (2 if p < q else 3)),
        jit(lambda x: x + len(repr(p))),
    ]
    out = []
    for a, w in ((1.0, 0), (1.0, 0), (2.0, 0), (2.5, 0), (2.5, 1)):
        p.a = a
        p.w += [7] * w
        out += [f(one()) for f in fs]
    return out


def stored_what_is_there_already(jit):
    kept, box = tj.ones(2), Box()
    box.t = kept

    @jit
    def f(x):
        box.t = kept
        return x * 2

    out = []
    for k in range(4):
        if k == 2:
            box.t = tj.zeros(2)
        out += [f(one()), box.t is kept]
    return out


def containers_that_count_their_reads(jit):
    class Table(dict):
        reads = 0

        def __getitem__(self, key):
            self.reads += 1
            return super().__getitem__(key)

    class Items(list):
        reads = 0

        def __getitem__(self, key):
            self.reads += 1
            return super().__getitem__(key)

        def __len__(self):
            self.reads += 10
            return super().__len__()

    table, items = Table(scale=2.0, shift=1.0), Items([2.0, 3.0])
    f = jit(lambda x: x * table["scale"] + table["shift"])
    g = jit(lambda x: x * items[0] + len(items))
    out = []
    for k in range(6):
        out += [f(one()), table.reads, g(one()), items.reads]
        if k == 3:
            table["scale"] = 3.0
            items.append(1.0)
    return out


def containers_that_change_what_they_store(jit):
    class Doubling(dict):
        writes = 0

        def __setitem__(self, key, value):
            self.writes += 1
            super().__setitem__(key, value * 2)

    table = Doubling()

    @jit
    def f(x):
        table["last"] = x
        table["n"] = 3
        return table["last"] + table.writes

    out = []
    for k in range(5):
        out += [f(one() * k), table["last"], table["n"], table.writes]
    return out


def recently_used_keys(jit):
    class Recent(collections.OrderedDict):
        def __getitem__(self, key):
            self.move_to_end(key)
            return super().__getitem__(key)

    recent = Recent(a=1.0, b=2.0, c=3.0)
    plain = dict(recent.items())

    @jit
    def f(x, key):
        return x * recent[key]

    @jit
    def g(x):
        plain["a"] = plain.pop("a")
        return x * plain["a"]

    out = []
    for key in "aabcabbac":
        out += [f(one(), key), list(recent), g(one()), list(plain)]
    return out


def contents_changed_by_code_nobody_sees(jit):
    @jit
    def pushed(x, other, values):
        heapq.heappush(values, 0)
        return x * 2

    @jit
    def mixed(x, other, values):
        other.shuffle(values)
        return x * 2

    @jit
    def pushed_in_a_side(x, other, values):
        if x.sum() > 3:
            bisect.insort(values, 2)
        return x * 2

    out = []
    for f in (pushed, mixed, pushed_in_a_side):
        values, other = [3, 1, 2], random.Random(3)
        for scale in (1.0, 3.0, 1.0, 3.0):
            out += [f(one() * scale, other, values), list(values)]
    return out


def classes_without_a_module(jit):
    space = {}
    exec("class Box:\n    rate = 2.0\n    def step(self, x):\n        return x * self.rate", space)
    exec("Nowhere = type('Nowhere', (Box,), {'rate': 3.0})", space)
    box, nowhere = space["Box"](), space["Nowhere"]

    @jit
    def f(x, box):
        return box.step(x) + type(box).rate

    out = [f(one(), box), f(one(), box)]
    space["Box"].rate = 5.0
    out += [f(one(), box)]
    space["Box"].step = lambda self, x: x - self.rate
    out += [f(one(), box)]
    box.__class__ = nowhere
    out += [f(one(), box), f(one(), box)]
    nowhere.rate = 7.0
    return [*out, f(one(), box)]


PROGRAMS = programs_in(globals())
