"""Programs that keep numbers in containers, hand them to libraries, and compute with them."""

from __future__ import annotations

import collections
import copy
import json
import math
import struct

import numpy as np

import tracejit as tj
from tests.capture.program_list import programs_in


def two():
    return tj.tensor([1.0, 2.0])


def dict_keyed_by_number(jit):
    d = {}
    f = jit(lambda x, k: d.setdefault(k, x * k))
    out = [f(two(), k) for k in (1.5, 2, 1.5, 2.0, 3)]
    return [*out, [(k, type(k).__name__) for k in d], d]


def numbers_stored_in_new_containers(jit):
    kept = []

    class Kept:
        pass

    o = Kept()

    @jit
    def f(x, k, n):
        o.pair = (k, n + 1)
        o.d = {"k": k * 2, n: [k, {n}]}
        kept.append((n, k, f"{k}-{n}"))
        o.s = {n, k}
        o.f = frozenset([n])
        o.r = range(n)
        o.sl = slice(n, None)
        return x * k

    out = []
    for k, n in ((1.5, 2), (2.5, 3), (2.5, 3)):
        out += [
            f(two(), k, n),
            o.pair,
            dict(o.d),
            set(o.s),
            o.f,
            list(o.r),
            o.sl.start,
            [type(v).__name__ for v in (*o.pair, *o.d, o.d["k"], *o.s, *o.f, o.r.stop, o.sl.start)],
        ]
    return [*out, kept]


def numbers_in_slots_and_deques(jit):
    class S:
        __slots__ = ("a", "b")

    s = S()
    s.a = s.b = None
    q = collections.deque()
    od = collections.OrderedDict()

    class L(list):
        pass

    rows = L()

    @jit
    def f(x, k, n):
        s.a = (k, (n,))
        s.b = [k]
        q.append((n, k))
        od[n] = k
        rows.append({n: (k,)})
        return x * k

    out = []
    for k, n in ((1.5, 2), (2.5, 3), (3.5, 3), (3.5, 4), (4.5, 5)):
        out += [
            f(two(), k, n),
            s.a,
            list(s.b),
            list(q),
            dict(od),
            list(rows),
            [
                type(v).__name__
                for v in (
                    *s.a,
                    s.a[1][0],
                    *s.b,
                    *q[-1],
                    *od,
                    *od.values(),
                    *rows[-1],
                    *rows[-1].values(),
                )
            ],
        ]
    return out


def containers_that_hold_themselves(jit):
    kept = [1.0]
    kept.append(kept)
    d = {"k": 2.0}
    d["d"] = d

    @jit
    def f(x):
        kept[0] = kept[0] + 1
        d["k"] = d["k"] * 2
        return x * kept[1][1][0] * d["d"]["k"]

    out = []
    for _ in range(3):
        out += [f(two()), kept[0], kept[1] is kept, d["k"], d["d"] is d]
    return out


def json_of_numbers(jit):
    log = []

    @jit
    def f(x, k):
        log.append(json.dumps({"k": k}))
        log.append(
            struct.pack("d", k).hex() + str(copy.deepcopy([k])) + type(copy.deepcopy(k)).__name__
        )
        return x * k

    return [f(two(), k) for k in (1.5, 2.5, 3.5)] + [log]


def type_checks_on_numbers(jit):
    log = []

    @jit
    def f(x, k):
        log.append(
            (
                type(k).__name__,
                isinstance(k, int),
                isinstance(k, float),
                type(k) is float,
                type(k) in (int, bool),
                k.__class__.__name__,
            )
        )
        if type(k) is float:
            return x * k
        return x + k

    for k in (1.5, 2, True, 2.5, 3, np.float64(1.0)):
        log.append(f(two(), k))
    return log


def cosine_schedule_inside(jit):
    class S:
        step = 0

    s = S()
    w = tj.ones(2)

    @jit
    def f(x):
        s.step += 1
        lr = 0.5 * (1 + math.cos(math.pi * s.step / 20)) if s.step > 3 else s.step / 3
        w.sub_(x * lr)
        return lr

    return [f(two()) for _ in range(16)] + [w, s.step]


def math_of_numbers(jit):
    f = jit(
        lambda x, k: (
            x * math.cos(k)
            + math.sqrt(k) * math.exp(-k)
            + math.log(k + 1)
            + math.floor(k)
            + math.pow(k, 2)
            + max(k, 1.0)
            + min(k, 2.0)
            + abs(k)
            + round(k, 1)
        )
    )
    return [f(two(), 0.25 * i) for i in range(1, 12)]


def number_methods(jit):
    @jit
    def f(x, k, n):
        return (
            x * k,
            k.is_integer(),
            k.hex(),
            n.bit_length(),
            n.to_bytes(2, "big"),
            divmod(n, 3),
            n % 3,
            n // 2,
            -n,
            ~n,
            n << 1,
            n & 1,
            k // 0.4,
            k % 0.3,
            k**0.5,
            int(k),
            float(n),
            complex(k),
            str(n),
            repr(k),
            f"{k:.2f}|{n:04d}",
            "%d %s" % (n, k),  # noqa: UP031
            bool(n),
            n == 3,
            k != 2.0,
            hash(k) == hash(1.5),
            n in (1, 2),
            [10, 20, 30, 40][n],
            "abcd"[n],
            round(k),
            math.isfinite(k),
            n.__index__(),
        )

    return [f(two(), k, n) for k, n in ((1.5, 2), (2.0, 3), (1.5, 2), (-0.5, 0), (0.0, 1))]


def numpy_scalars_and_math(jit):
    class S:
        lr = 0.1

    s = S()

    @jit
    def f(x):
        s.lr = s.lr * 0.9
        return x * np.float64(s.lr) + np.sqrt(s.lr) + float(np.exp(s.lr))

    return [f(two()) for _ in range(4)] + [s.lr, type(s.lr).__name__]


def methods_of_number_types(jit):
    f = jit(lambda x, k: x * (2 if float.is_integer(k) else 3))
    g = jit(lambda x, n: x * int.bit_length(n))
    h = jit(lambda x, k, m: x * sum(map(float.is_integer, [k, m])))
    i = jit(lambda x, n, m: x * sorted([n, m], key=int.__neg__)[0])
    out = []
    for k, m, n in ((2.0, 1.0, 3), (2.5, 2.0, 4), (2.5, 2.5, 4), (3.0, 1.0, -1)):
        out += [f(two(), k), h(two(), k, m), g(two(), n), i(two(), n, 2)]
    return out


PROGRAMS = programs_in(globals())
