"""Programs on what arguments and results are kept in: dataclasses, dicts, sets, iterators."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import itertools
import operator
import types
import weakref
from typing import Any, NamedTuple

import numpy as np

import tracejit as tj
from tests.capture.program_inputs import tried
from tests.capture.program_list import programs_in


def two():
    return tj.tensor([1.0, 2.0])


@dataclasses.dataclass
class Batch:
    """What a loader gives."""

    x: Any
    scale: Any = 1.0
    name: str = "n"
    extra: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Frozen:
    """Fields that are never set again."""

    x: Any
    k: int = 1


@dataclasses.dataclass
class Slotted:
    """Fields in slots."""

    __slots__ = ("x", "k")
    x: Any
    k: float


class Pair(NamedTuple):
    """A named tuple."""

    a: Any
    b: Any = 2.0


class Mode(enum.Enum):
    """A choice."""

    ADD = 1
    MUL = 2


def dataclass_argument(jit):
    @jit
    def f(b):
        y = b.x * b.scale
        if b.name == "neg":
            y = -y
        for k in b.extra:
            y = y + b.extra[k]
        b.scale = b.scale + 1
        b.extra["seen"] = y.detach()
        return dataclasses.replace(b, x=y)

    b = Batch(tj.ones(2))
    out = []
    for name in ("n", "n", "neg", "n"):
        b.name = name
        r = f(b)
        out += [r, b, r.extra is b.extra]
    b.extra = {"z": tj.ones(2), "a": 2.0}
    out += [f(b), b]
    b.extra["a"] = 7
    out += [f(b), b]
    return out


def frozen_and_slotted(jit):
    @jit
    def f(a, s):
        y = a.x * a.k + s.x * s.k
        s.x = y
        s.k += 1
        return y, a

    a, s = Frozen(tj.ones(2)), Slotted(tj.ones(2), 1.0)
    out = []
    for k in range(4):
        y, a2 = f(a, s)
        out += [y, a2 is a, s.x, s.k]
        a = Frozen(tj.ones(2) * k, k)
    return out


def named_tuple_results(jit):
    @jit
    def f(p):
        return p._replace(a=p.a + 1), Pair(p.a * p.b), p

    p = Pair(tj.zeros(2))
    out = []
    for _ in range(4):
        q, r, same = f(p)
        out += [q, r, same is p, type(q).__name__]
        p = q
    return out


def enum_and_none(jit):
    @jit
    def f(x, mode, bias=None):
        y = x + 1 if mode is Mode.ADD else x * 2
        return y if bias is None else y + bias

    x = tj.ones(2)
    return [
        f(x, Mode.ADD),
        f(x, Mode.MUL),
        f(x, Mode.ADD, x),
        f(x, Mode.ADD),
        f(x, Mode.MUL, bias=x),
        f(x, Mode.MUL, bias=2.0),
        f(x, Mode.MUL, None),
    ]


def dict_orders(jit):
    @jit
    def f(d):
        y = tj.zeros(2)
        for v in d.values():
            y = y * 2 + v
        return {k: v + y for k, v in d.items()}

    a, b, c = tj.ones(2), tj.ones(2) * 2, tj.ones(2) * 3
    out = []
    for d in (
        {"a": a, "b": b},
        {"b": b, "a": a},
        {"a": a, "b": b, "c": c},
        {"c": c, "a": a, "b": b},
        {1: a, "b": b},
        {(1, 2): a},
        {},
        {"a": a, "b": 3.0},
        collections.OrderedDict(a=a, b=b),
        collections.defaultdict(list, a=a, b=b),
        {"a": a, "b": b},
        types.MappingProxyType({"a": a, "b": b}),
    ):
        r = f(d)
        out += [r, list(r)]
    return out


def nested_lists(jit):
    def total(v):
        if isinstance(v, tj.Tensor):
            return v.sum()
        if isinstance(v, (list, tuple)):
            return sum((total(u) for u in v), 0)
        if isinstance(v, dict):
            return sum((total(u) for u in v.values()), 0)
        return 0 if v is None else v

    f = jit(lambda v: total(v))
    a = tj.ones(2)
    out = []
    for v in (
        [a, [a, [a]]],
        [a, [a, (a,)]],
        [a, [a, []]],
        [[], a],
        [a, {"k": [a, 2]}],
        [a, {"k": [a, 3]}],
        [a, {"k": [a, None]}],
        (a, a),
        a,
        3,
        [a, [a, [a]]],
    ):
        out.append(f(v))
    return out


def container_subclasses(jit):
    class Stack(list):
        def top(self):
            return self[-1]

    class Attr(dict):
        @property
        def k(self):
            return self["k"]

        @k.setter
        def k(self, v):
            self["k"] = v

    @jit
    def f(s, d):
        y = s.top() * d.k
        s.append(y)
        d["last"] = y
        return y

    s, d = Stack([tj.ones(2)]), Attr(k=2.0)
    out = []
    for i in range(4):
        out += [f(s, d), len(s), d["last"] is s[-1], s, d]
        d.k = 2.0 + i
    s.pop()
    out += [f(s, d), len(s)]
    return out


def deque_and_counter(jit):
    q = collections.deque([tj.ones(1)] * 2, maxlen=3)
    c = collections.Counter()

    @jit
    def f(x, tag):
        q.append(x + q[0])
        c[tag] += 1
        return sum(q) * c[tag]

    out = []
    for i, tag in enumerate("aabba"):
        out += [f(tj.full((1,), float(i)), tag), list(q), dict(c)]
    return out


def chain_map_and_namespace(jit):
    ns = types.SimpleNamespace(lr=0.5, w=tj.ones(2))
    cm = collections.ChainMap({"a": 1.0}, {"a": 2.0, "b": 3.0})

    @jit
    def f(x):
        ns.w = ns.w - ns.lr * x
        return x * cm["a"] + cm["b"]

    x = tj.ones(2)
    out = [f(x), f(x), ns.w]
    ns.lr = 0.25
    cm["a"] = 7.0
    out += [f(x), ns.w]
    cm.maps[1]["b"] = 0.5
    del cm["a"]
    out += [f(x), ns.w, f(x)]
    return out


def counter_dict(jit):
    c = collections.defaultdict(float)
    n = collections.defaultdict(list)

    @jit
    def f(x, k):
        c[k] += 1.5
        n[k].append(x * c[k])
        return x * c[k]

    out = [f(two(), k) for k in "abab"]
    return [*out, dict(c), dict(n), type(c).__name__]


def set_of_strings_grows(jit):
    seen = set()

    @jit
    def f(x, k):
        if k not in seen:
            seen.add(k)
            return x * 100
        return x

    return [f(two(), k) for k in ("a", "a", "b", "a", "b", "c")] + [sorted(seen)]


def weak_dicts_and_sets(jit):
    class K:
        pass

    k1 = K()
    wd = weakref.WeakKeyDictionary({k1: 2.0})
    s = {1, 2}
    fs = frozenset("ab")
    f = jit(lambda x: x * wd[k1] + len(s) + (1 if "a" in fs else 2))
    x = two()
    out = [f(x), f(x)]
    wd[k1] = 3.0
    out += [f(x)]
    s.add(9)
    out += [f(x)]
    s.discard(1)
    out += [f(x)]
    fs = frozenset("c")
    out += [f(x)]
    return out


def numbers_in_odd_places(jit):
    class S:
        __slots__ = ("k", "t")

    s = S()
    s.k, s.t = 1.0, two()
    d = {"lr": 0.1, 3: 0.2, (1, 2): 0.3}
    nested = [[1, 2.0], (3, [4.0])]
    a = np.float64(2.0)

    class Box:
        pass

    b = Box()
    b.a = a
    b.i = np.int64(3)
    f = jit(
        lambda x: (
            x * s.k * d["lr"] * d[3] * d[(1, 2)] * nested[0][1] * nested[1][1][0] * b.a * b.i + s.t
        )
    )
    x = two()
    out = [f(x), f(x)]
    s.k = 2.0
    out += [f(x)]
    d[3] = 5.0
    out += [f(x)]
    d[(1, 2)] = -1.0
    out += [f(x)]
    nested[1][1][0] = 7.0
    out += [f(x)]
    b.a = np.float64(3.0)
    out += [f(x)]
    b.a = np.float32(3.0)
    out += [f(x)]
    b.i = 4
    out += [f(x)]
    s.t = two() * 3
    out += [f(x)]
    s.k = True
    out += [f(x)]
    s.k = 1
    out += [f(x)]
    s.k = two()
    out += [f(x)]
    s.k = None
    out += [type(tried(f, x))]
    return out


def bool_int_float_confusion(jit):
    class Box:
        pass

    b = Box()
    b.k = 1
    f = jit(lambda x: (x * b.k, b.k, x.to(tj.int64) / 2 + b.k if b.k else x))
    x = two()
    out = []
    for k in (1, True, 1.0, 0, False, 0.0, -0.0, 1, True, 2, 2.0, "1" if False else 1):
        b.k = k
        out.append(f(x))
    return out


def comprehension_scopes(jit):
    ks = [1.0, 2.0]
    f = jit(
        lambda x: (
            [x * k for k in ks],
            {i: x + i for i in range(len(ks))},
            sum(x * k for k in ks),
            set(ks),
        )
    )
    out = [f(two()), f(two())]
    ks.append(5.0)
    out.append(f(two()))
    ks[0] = 9.0
    out.append(f(two()))
    ks.clear()
    out.append(f(two()))
    return out


def generators_and_iterators(jit):
    def rows(x, n):
        for i in range(n):
            yield x[i] * i

    @jit
    def f(x, n):
        a = sum(rows(x, n))
        b = [r + 1 for r in rows(x, n)]
        first = next(iter(rows(x, n)), None)
        return a, b, first, max(len(b), 1)

    x = tj.arange(12.0).view(4, 3)
    return [f(x, 4), f(x, 2), f(x, 0), f(x * 2, 4), f(tj.ones(5, 3), 4)]


def iterator_argument(jit):
    f = jit(lambda it: sum(it))
    x = tj.ones(2)
    out = [f(iter([x, x])), f(iter([x, x, x])), f(x * i for i in range(3))]
    it = iter([x] * 4)
    out += [jit(lambda i: next(i) * 2)(it), len(list(it))]
    g = jit(lambda i: next(i))
    it = iter([x, x * 2, x * 3])
    out += [g(it), g(it), g(it)]
    return out


def itertools_state(jit):
    c = itertools.count()
    cy = itertools.cycle([1.0, 2.0, 3.0])
    f = jit(lambda x: x * next(c) + next(cy))
    x = two()
    out = [f(x) for _ in range(6)]
    return [*out, next(c), next(cy)]


def strings_and_bytes(jit):
    f = jit(lambda x, s: (x * len(s), s, s + s, {s: x}))
    x = two()
    return [f(x, s) for s in ("a", "bb", "", "a", b"a", b"bb", "é", "a")]


def returned_objects(jit):
    class Out:
        def __init__(self, a, b):
            self.a, self.b = a, b

        def total(self):
            return self.a + self.b

    f = jit(lambda x: Out(x * 2, x))
    x = two()
    out = []
    for k in range(4):
        o = f(x + k)
        out += [o.a, o.b, o.total(), type(o) is Out]
    return out


def returned_callables(jit):
    @jit
    def f(x, k):
        def g(y):
            return y * k + x

        return g

    @jit
    def h(x):
        return lambda: x + 1

    x = two()
    return [f(x, 2.0)(x), f(x, 3.0)(x * 2), h(x)(), h(x * 2)()]


def returned_generator(jit):
    @jit
    def f(x):
        return (x * i for i in range(3))

    @jit
    def g(x):
        for i in range(3):
            yield x * i

    return [list(f(two())), list(f(two() * 2)), list(g(two())), list(g(two() * 2))]


def keys_that_go_and_come(jit):
    class Made(dict):
        def __missing__(self, key):
            self[key] = 1.0
            return 1.0

    out = []
    for table in (collections.defaultdict(lambda: 5.0), Made()):
        @jit
        def f(x, table=table):
            return x * table["a"] if "a" in table else x

        for change in (functools.partial(table.update, a=2.0), table.clear,
                       functools.partial(operator.getitem, table, "a")):
            change()
            out += [f(tj.ones(2)), f(tj.ones(2)), dict(table)]
    return out


PROGRAMS = programs_in(globals())
