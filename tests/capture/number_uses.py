# ruff: noqa: UP031
"""What C code does with numbers that change: each use takes an int and a float.

Called by `test_numbers_in_c_code.py`.
"""

from __future__ import annotations

import array
import bisect
import calendar
import cmath
import ctypes
import datetime
import decimal
import fractions
import hashlib
import heapq
import io
import itertools
import json
import math
import operator
import pickle
import random
import statistics
import struct
import textwrap
import time
from collections import Counter, OrderedDict, defaultdict, deque

import numpy as np

LETTERS = "abcdefghijkl"

USES = {
    "star width": lambda n, v: "%*d" % (n, 5),
    "star precision": lambda n, v: "%.*f" % (n, v),
    "percent d": lambda n, v: "%d %i %x %o %c" % (n, n, n, n, n + 60),
    "percent f": lambda n, v: "%f %g %e %s %r" % (v, v, v, v, n),
    "percent dict": lambda n, v: "%(n)d %(v).2f" % {"n": n, "v": v},
    "format width": lambda n, v: f"{v:{n}.{n}f}",
    "format method": lambda n, v: "{:{}}".format(LETTERS, n + 20),
    "format spec": lambda n, v: format(n, "05d") + format(v, ".3e"),
    "conversions": lambda n, v: f"{n!r} {v!s} {n:b} {v:>10}",
    "ldexp": lambda n, v: math.ldexp(v, n),
    "comb": lambda n, v: (math.comb(10, n), math.perm(10, n), math.factorial(n)),
    "gcd": lambda n, v: (math.gcd(n, 12), math.lcm(n, 4), math.isqrt(n)),
    "math": lambda n, v: (math.sin(v), math.pow(v, n), math.fmod(v, n), math.hypot(v, n)),
    "rounding": lambda n, v: (math.floor(v), math.ceil(v), math.trunc(v), round(v, n), round(v)),
    "nextafter": lambda n, v: (math.nextafter(v, n), math.ulp(v), math.frexp(v), math.modf(v)),
    "prod": lambda n, v: (math.prod([n, v]), math.fsum([n, v]), sum([n, v]), math.dist([n], [v])),
    "isclose": lambda n, v: (math.isclose(v, n), math.isfinite(v), math.copysign(v, -n)),
    "cmath": lambda n, v: (cmath.sqrt(v), cmath.rect(v, n), complex(v, n), complex(n)),
    "pack": lambda n, v: struct.pack("<if", n, v) + struct.pack(f"{n}s", b"abc"),
    "bytes": lambda n, v: (bytes(n), bytes([n]), bytearray(n), bytearray([n, n])),
    "to_bytes": lambda n, v: (n.to_bytes(n, "big"), int.from_bytes(bytes([n]), "big")),
    "bits": lambda n, v: (n.bit_length(), n.bit_count(), bin(n), hex(n), oct(n), chr(n + 60)),
    "float methods": lambda n, v: (v.hex(), v.is_integer(), v.as_integer_ratio()),
    "range": lambda n, v: ([*range(n)], range(n, 2 * n, n)[0], len(range(n))),
    "slices": lambda n, v: (LETTERS[:n], LETTERS[n:], LETTERS[::n], LETTERS[n], b"abcdefgh"[n]),
    "list slices": lambda n, v: ([1, 2, 3, 4, 5, 6, 7][n], [*LETTERS][-n:], tuple(LETTERS)[:n]),
    "repeats": lambda n, v: ("x" * n, n * "x", [v] * n, (n,) * n, b"x" * n),
    "slice": lambda n, v: slice(n).indices(n + 1),
    "adjusted": lambda n, v: ("x".zfill(n), "x".ljust(n, "."), "x".rjust(n), "x".center(n)),
    "splits": lambda n, v: ("a b c d e f".split(" ", n), "abab".replace("a", "c", n)),
    "finds": lambda n, v: (LETTERS.find("d", n), LETTERS.count("b", 0, n), "\t".expandtabs(n)),
    "islice": lambda n, v: ([*itertools.islice(LETTERS, n)], [*itertools.repeat(v, n)]),
    "combinations": lambda n, v: len([*itertools.combinations("abcdef", n)]),
    "count": lambda n, v: next(itertools.count(n, v)),
    "accumulate": lambda n, v: [*itertools.accumulate([n, v, n])],
    "deque": lambda n, v: (deque([1, 2, 3, 4], n), deque([n, v]).index(v)),
    "insert": lambda n, v: (lambda x: (x.insert(n, v), x.pop(n), x))([1, 2, 3, 4, 5, 6, 7]),
    "sorted": lambda n, v: (sorted([n, v, 1]), max(n, v), min(n, v), [n, v].index(v)),
    "bisect": lambda n, v: (bisect.bisect([1, 2, 3], n), heapq.nsmallest(n, [3, 1, 2])),
    "divmod": lambda n, v: (divmod(n, 2), divmod(v, n), pow(n, 2), pow(n, 3, 5), abs(-n)),
    "operator": lambda n, v: (
        operator.index(n),
        operator.mul("x", n),
        operator.getitem(LETTERS, n),
    ),
    "itemgetter": lambda n, v: operator.itemgetter(n)(LETTERS),
    "random": lambda n, v: (random.Random(n).random(), random.Random(v).getrandbits(n)),
    "randint": lambda n, v: (random.Random(1).randint(n, 20), random.Random(1).sample(LETTERS, n)),
    "datetime": lambda n, v: (datetime.datetime(2000 + n, n, n), datetime.timedelta(n, v)),
    "timestamp": lambda n, v: (
        datetime.datetime.fromtimestamp(n, datetime.UTC),
        time.gmtime(n)[:3],
    ),
    "date": lambda n, v: datetime.date(2020, n, n).replace(day=n).isoformat(),
    "calendar": lambda n, v: calendar.monthrange(2020, n),
    "strftime": lambda n, v: time.strftime("%Y", (2000 + n, 1, 1, 0, 0, 0, 0, 1, 0)),
    "sleep": lambda n, v: time.sleep(v * 0.0),
    "array": lambda n, v: (
        array.array("i", [n, n]),
        array.array("d", [v]),
        array.array("i", [1]) * n,
    ),
    "decimal": lambda n, v: (
        decimal.Decimal(n),
        decimal.Decimal(v),
        decimal.Decimal("1.25").quantize(decimal.Decimal(10) ** -n),
    ),
    "fraction": lambda n, v: (fractions.Fraction(n, 6), fractions.Fraction(v).limit_denominator(n)),
    "statistics": lambda n, v: statistics.mean([n, v, 1]),
    "json": lambda n, v: (json.dumps({"n": n, "v": [v]}), json.dumps([n], indent=n)),
    "pickle": lambda n, v: pickle.loads(pickle.dumps((n, v))),
    "repr": lambda n, v: (repr(n), str(v), repr([n, v]), str({n: v})),
    "hash": lambda n, v: (hash(n), hash(v), {n: 1}[n], {v} == {v}, n in [n], v in (v,)),
    "dicts": lambda n, v: (Counter([n, n])[n], OrderedDict({n: v}), defaultdict(int, {n: v})[n]),
    "ctypes": lambda n, v: (
        ctypes.c_int(n).value,
        ctypes.c_double(v).value,
        len((ctypes.c_int * n)()),
    ),
    "hashlib": lambda n, v: hashlib.md5(bytes([n])).hexdigest(),
    "io": lambda n, v: (io.BytesIO(b"abcdefgh").read(n), io.StringIO("abcdefgh").read(n)),
    "textwrap": lambda n, v: textwrap.wrap("aa bb cc dd ee", n + 3),
    "shuffle": lambda n, v: (lambda x: (random.Random(n).shuffle(x), x)[1])([1, 2, 3, 4]),
    "int": lambda n, v: (int(v), int("10", n + 2), float(n), bool(n), str(n), int(n)),
    "memoryview": lambda n, v: bytes(memoryview(b"abcdefgh")[n:]),
    "numpy makes": lambda n, v: (
        np.zeros(n),
        np.arange(n),
        np.full(n, v),
        np.eye(n),
        np.ones((n, 2)),
    ),
    "numpy takes": lambda n, v: (
        np.arange(9)[n],
        np.arange(9)[:n],
        np.arange(9).reshape(3, 3)[:, :n],
    ),
    "numpy shapes": lambda n, v: (
        np.arange(6).repeat(n),
        np.roll(np.arange(5), n),
        np.tile([1], n),
    ),
    "numpy numbers": lambda n, v: (
        np.float32(v),
        np.int64(n),
        np.array([n, v]),
        np.sin(v),
        np.add(n, v),
    ),
    "numpy random": lambda n, v: (
        np.random.default_rng(n).permutation(n),
        np.random.RandomState(n).rand(n),
    ),
    "numpy ops": lambda n, v: (
        np.arange(4) * n,
        np.arange(4) + v,
        np.linspace(0, v, n),
        np.float64(2) ** n,
    ),
}
