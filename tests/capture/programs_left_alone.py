"""Programs whose objects tell when their methods are called, which guards must not do; what
constructors and copies read."""

from __future__ import annotations

import copy
import dataclasses
import enum
import typing

import numpy as np

from tests.capture.program_inputs import Box, many, two
from tests.capture.program_list import programs_in


def teller(name, result):
    def method(self, *args):
        self.told.append(name)
        return result

    return method


class Teller:
    """Tells of all that is done to it."""

    told: typing.ClassVar[list] = []

    def __init__(self, k):
        self.k = k

    __repr__ = teller("repr", "a teller")
    __str__ = teller("str", "a teller")
    __eq__ = teller("eq", True)
    __hash__ = teller("hash", 1)
    __bool__ = teller("bool", True)
    __len__ = teller("len", 1)
    __iter__ = teller("iter", iter(()))
    __contains__ = teller("contains", False)
    __index__ = teller("index", 1)
    __float__ = teller("float", 1.0)
    __dir__ = teller("dir", [])
    __format__ = teller("format", "a teller")


class Other(Teller):
    """Another class."""


def objects_that_tell(jit):
    Teller.told.clear()
    box = Box(one=Teller(2.0), many=[Teller(3.0)], table={"a": Teller(1.5)})
    box.deep = (Teller(1.0), [Teller(2.0)])
    f = jit(lambda x: x * box.one.k * box.many[0].k * box.table["a"].k * box.deep[1][0].k)
    g = jit(lambda x, o: x * o.k)
    out = many(f) + [g(two(), box.one) for _ in range(3)]
    box.one = Other(5.0)
    out += many(f) + [g(two(), box.one) for _ in range(3)]
    box.many.append(Teller(1.0))
    box.table["b"], box.deep = Teller(9.0), [Teller(1.0), [Teller(4.0)]]
    out += many(f)
    box.many, box.one = (Other(7.0),), Box(k=2.5)
    out += [*many(f), g(two(), box.one), g(two(), box.many[0])]
    return [*out, list(Teller.told)]


def arguments_that_tell(jit):
    Teller.told.clear()
    f = jit(lambda x, o: x * 2)
    given = (Teller(1.0), Teller(2.0), 3, [Teller(1.0)], [Teller(1.0)] * 2, {"a": Other(1.0)}, None)
    return [f(two(), o) for o in given] + [list(Teller.told)]


def telling(kind):
    """A class of values like `kind` that counts comparisons and texts."""

    class Telling(kind):
        count = 0

        def __eq__(self, other):
            Telling.count += 1
            return kind.__eq__(self, other)

        def __ne__(self, other):
            Telling.count += 1
            return kind.__ne__(self, other)

        def __repr__(self):
            Telling.count += 1
            return "told"

        __hash__ = kind.__hash__

    return Telling


class Level(enum.Enum):
    """Members that cannot be compared."""

    LOW = 1.0
    HIGH = 2.0

    def __eq__(self, other):
        raise RuntimeError("compared")

    def __repr__(self):
        raise RuntimeError("shown")

    __hash__ = enum.Enum.__hash__


def values_that_tell(jit):
    text, whole, number, half = map(telling, (str, int, float, np.float32))
    box = Box(text=text("a"), whole=whole(3), number=number(2.5), half=half(1.5), level=Level.LOW)
    f = jit(lambda x: x * 2 if box.text.upper() == "A" else x + 5)
    g = jit(lambda x: x * (box.whole + 1) + (box.number + 1) + float(box.half + 1))
    h = jit(lambda x: x * box.level.value)
    out = many(f, g, h)
    for _ in range(2):
        box.text, box.whole, box.number, box.half = text("b"), whole(4), number(5.5), half(2.5)
        box.level = Level.HIGH
        out += many(f, g, h)
    return [*out, text.count, whole.count, number.count, half.count]


def defaults_of_constructors(jit):
    shared = Box(k=2.0)

    @dataclasses.dataclass
    class Config:
        part: object = shared
        gain: float = 2.0

    class Pair(typing.NamedTuple):
        a: float = 2.0
        b: object = None

    f = jit(lambda x: x * Config().part.k + Config(gain=3.0).gain)
    g = jit(lambda x: x * Pair().a)
    out = many(f, g)
    shared.k = 5.0
    out += many(f, g)
    Config.__init__.__defaults__ = (Box(k=9.0), 1.0)
    Pair.__new__.__defaults__ = (50.0, None)
    return out + many(f, g)


def factories_of_constructors(jit):
    table = {"k": 2.0}

    @dataclasses.dataclass
    class Config:
        held: dict = dataclasses.field(default_factory=lambda: dict(table))

        def __post_init__(self):
            self.twice = self.held["k"] * 2

    f = jit(lambda x: x * Config().twice)
    out = many(f)
    table["k"] = 5.0
    return out + many(f)


def objects_copied(jit):
    class Slotted:
        __slots__ = ("a", "b")

    box, slotted = Box(k=2.0, parts=[1.0]), Slotted()
    slotted.a, slotted.b = 2.0, [1.0]

    def shallow(x):
        other = copy.copy(box)
        other.k = other.k + 1
        other.parts.append(2.0)
        return x * other.k

    def deep(x):
        other = copy.deepcopy(box)
        other.parts[0] = 9.0
        return x * sum(other.parts) + len(vars(other))

    f, g = jit(shallow), jit(deep)
    h = jit(lambda x: x * copy.copy(slotted).a + copy.deepcopy(slotted).b[0])
    out = [*many(f), box.k, list(box.parts), *many(g, h), list(box.parts)]
    box.k, box.fresh, slotted.a, slotted.b[0] = 5.0, 3.0, 5.0, 7.0
    return [*out, *many(f, g, h), vars(box)]


def numbers_copied(jit):
    box = Box(n=1, rate=0.5, kept=[])

    @dataclasses.dataclass
    class Config:
        rate: float = 0.5
        sizes: tuple = (1, 2.0)

    config = Config()

    def f(x):
        box.n, box.rate = box.n + 1, box.rate * 0.5
        box.kept.append((copy.copy(box.n), copy.deepcopy({"rate": box.rate})))
        return x * box.rate + dataclasses.asdict(config)["rate"]

    f = jit(f)
    out = many(f)
    config.rate = 0.125
    return [*out, *many(f), box.kept]


PROGRAMS = programs_in(globals())
