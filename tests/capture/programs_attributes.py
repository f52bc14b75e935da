"""Programs that read attributes where no code names them: by computed names, in slots, behind an
instance's own, through getters, format strings, partials, modules and registers of classes."""

from __future__ import annotations

import abc
import dataclasses
import enum
import functools
import importlib
import operator
import re
import sys
import threading
import types
import weakref

import tracejit as tj
from tests.capture.program_inputs import Box, many, two
from tests.capture.program_list import programs_in


def attributes_of_computed_names_appear_and_go(jit):
    box, names = Box(gain=2.0, w0=tj.ones(2)), ("gain", "shift")

    @jit
    def f(x):
        for name in names:
            x = x * getattr(box, name, 10.0)
        k = 0
        while hasattr(box, f"w{k}"):
            x, k = x + getattr(box, f"w{k}"), k + 1
        return x

    out = many(f)
    box.shift = 5.0
    out += many(f)
    box.w1 = tj.ones(2) * 10
    out += many(f)
    del box.gain
    return out + many(f)


def class_attributes_of_computed_names(jit):
    class Basis:
        alpha = 2.0

        def act_fast(self, x):
            return x * 2

    class Config(Basis):
        beta = 3.0

    cfg, which = Config(), ["alpha"]
    f = jit(lambda x: x * getattr(cfg, which[0]))
    g = jit(lambda x: x * sum(getattr(Config, k, 1.0) for k in ("alpha", "beta", "late")))
    h = jit(lambda x: getattr(cfg, "act_" + "fast"[:4])(x))
    out = many(f, g, h)
    Basis.alpha = 7.0
    out += many(f, g)
    cfg.alpha, Config.late = 0.5, 100.0
    out += many(f, g)
    which[0] = "beta"
    cfg.act_fast = lambda x: x * 100
    return out + many(f, g, h)


def slots_of_computed_names(jit):
    @dataclasses.dataclass(slots=True)
    class Config:
        scale: float = 2.0
        shift: float = 1.0

    cfg = Config()

    @jit
    def f(x):
        for field in dataclasses.fields(cfg):
            x = x * getattr(cfg, field.name, -1.0)
        return x

    @jit
    def g(x):
        match cfg:
            case Config(scale, shift):
                return x * scale + shift
        return x

    out = many(f, g)
    cfg.scale = 5.0
    out += many(f, g)
    del cfg.shift
    return out + many(f, g)


def entries_of_an_objects_dict(jit):
    box = Box(a=1.0, b=2.0)

    def act(x, a=3.0, **others):
        return x * a + len(others)

    @jit
    def f(x):
        for name, value in box.__dict__.items():
            x = x * value + len(name)
        return act(x, **box.__dict__) + (10 if "late" in box.__dict__ else 0)

    out = many(f)
    box.late = 3.0
    out += many(f)
    del box.a
    out += many(f)
    box.a = 1.0  # another order
    return out + many(f)


def class_attributes_behind_an_instances(jit):
    class Basis:
        scale = 1.0

    class Scaled(Basis):
        scale = 2.0

        def __init__(self):
            self.scale = 3.0

        def all(self):
            return super().scale + type(self).scale * 10 + self.scale * 100

    box = Scaled()
    f = jit(lambda x: x * box.all())
    out = many(f)
    Scaled.scale = 4.0
    out += many(f)
    Basis.scale = 5.0
    return out + many(f)


def descriptors_with_attributes_of_their_own(jit):
    class Scaled:
        factor = 2.0

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, box, owner=None):
            return box.__dict__[self.name] * self.factor

        def __set__(self, box, value):
            box.__dict__[self.name] = value

    class Read(property):
        factor = 2.0

        def __get__(self, box, owner=None):
            return super().__get__(box, owner) * self.factor

    class Net:
        scale = Scaled()
        read = Read(lambda self: self.__dict__["scale"] + 1)

    net = Net()
    net.scale = 1.0
    f, g = jit(lambda x: x * net.scale), jit(lambda x: x * net.read)
    out = many(f, g)
    vars(Net)["scale"].factor = vars(Net)["read"].factor = 9.0
    out += many(f, g)
    del vars(Net)["read"].factor
    Read.factor = 5.0
    return out + many(f, g)


def names_of_functions_and_classes(jit):
    class Net:
        pass

    def metric(k):
        def act(x):
            return x * k

        act.__name__ = f"metric{k}"
        return act

    net, held = Net(), Box(act=metric(1))
    f = jit(lambda x: {held.act.__name__: held.act(x), type(net).__name__: x})
    out = many(f)
    for k in (2, 3, 1):
        held.act = metric(k)
        out += many(f)
    Net.__name__ = "Other"
    return out + many(f)


def attributes_of_modules(jit):
    config = types.ModuleType("config_of_a_program")
    config.rate_a, config.rate_b, which = 2.0, 3.0, ["a"]
    f = jit(lambda x: x * getattr(config, "rate_" + which[0]) * getattr(config, "boost", 1.0))
    g = jit(lambda x: x * importlib.import_module("config_of_a_program").rate_a)

    @jit
    def h(x):
        config.last = x * 2
        return x

    out = []
    with_it = lambda: [*many(f, g, h), config.last]  # noqa: E731
    sys.modules["config_of_a_program"] = config
    try:
        out += with_it()
        config.rate_a = 20.0
        out += with_it()
        config.boost, which[0] = 5.0, "b"
        out += with_it()
        del config.last
        config.rate_b = 7.0
        out += with_it()
        sys.modules["config_of_a_program"] = Box(rate_a=9.0)
        return out + many(g)
    finally:
        del sys.modules["config_of_a_program"]


NUMBER = 2.0


def modules_in_variables_and_tables(jit):
    global NUMBER
    config = types.ModuleType("config_of_a_program")
    config.rate, which = 2.0, ["rate"]

    def read(module, name):
        return getattr(module, name)

    table = {"this": sys.modules[__name__]}
    f = jit(lambda x: x * read(config, which[0]))
    g = jit(lambda x: x * getattr(table["this"], "".join(("NUM", "BER"))))
    NUMBER = 2.0
    out = many(f, g)
    config.rate = NUMBER = 20.0
    out += many(f, g)
    config.other, which[0] = 3.0, "other"
    out += many(f)
    config.other = tj.ones(2)
    return out + many(f)


def partials_and_methods_replaced(jit):
    class Loud(functools.partial):
        def __call__(self, *args, **keywords):
            return super().__call__(*args, **keywords) * 100

    class Twice:
        def __init__(self, method):
            self.__self__, self.__func__ = method.__self__, method.__func__

        def __call__(self, x):
            return self.__func__(self.__self__, self.__func__(self.__self__, x))

    class Net:
        def act(self, x):
            return x * 2

    def act(x, k):
        return x * k

    net = Net()
    held = Box(part=functools.partial(act, k=2.0), method=net.act)
    held.part.scale = 3.0
    f = jit(lambda x: held.part(x) * getattr(held.part, "scale", 7.0))
    g = jit(lambda x: held.method(x))
    out = many(f, g)
    held.part.scale, held.method = 30.0, Twice(net.act)
    out += many(f, g)
    held.part, held.method = Loud(act, k=2.0), net.act
    return out + many(f, g)


RANK = operator.attrgetter("rank")


def getters_and_formats(jit):
    deep = operator.attrgetter("inner.scale")
    parts = [Box(rank=2, inner=Box(scale=3.0)), Box(rank=1, inner=Box(scale=5.0))]
    table, shown = {"slow": 2.0, "fast": 3.0}, Box(mode="slow", tag="other")

    @jit
    def f(x):
        for part in sorted(parts, key=RANK):
            x = (x + 1) * deep(part)
        return x

    g = jit(lambda x: x * table["{.mode}".format(shown)])  # noqa: UP032
    h = jit(lambda x: x * table["{box.mode}".format_map({"box": shown})])
    out = many(f, g, h)
    parts[0].rank, shown.mode = 0, "fast"
    out += many(f, g, h)
    parts[1].inner.scale = 7.0
    return out + many(f)


def subclasses_and_registers(jit):
    class Plugin(abc.ABC):  # noqa: B024
        weight = 1.0

    class First(Plugin):
        weight = 2.0

    class Layer:
        scale = 3.0

    layer = Layer()
    f = jit(lambda x: x * sum(p.weight for p in Plugin.__subclasses__()))
    g = jit(lambda x: x if isinstance(layer, Plugin) else x * layer.scale)
    out = many(f, g)
    kept = type("Second", (Plugin,), {"weight": 5.0})
    out += many(f)
    Plugin.register(Layer)
    return [*out, *many(g), First.__name__, kept.__name__]


def weak_references(jit):
    one, other = Box(k=2.0), Box(k=3.0)
    by_name, members = weakref.WeakValueDictionary(a=one), weakref.WeakSet([one])
    f = jit(lambda x: x * by_name["a"].k)
    g = jit(lambda x: x * len(members))
    out = many(f, g)
    one.k = 7.0
    members.add(other)
    return out + many(f, g)


ASKED = []


class Answering:
    """Has an attribute for some names; notes for which it was asked."""

    def __getattr__(self, name):
        ASKED.append(name)
        return {"late": 2.0}[name]

    def __call__(self, x):
        return x * self.late


class AnsweringSlots(Answering):
    __slots__ = ("k",)


class AnsweringClasses(type):
    __getattr__ = Answering.__getattr__


class Answered(metaclass=AnsweringClasses):
    """Has no attribute of its own."""


HELD, IN_SLOTS = Answering(), AnsweringSlots()


def objects_that_answer_for_some_names(jit):
    IN_SLOTS.k = 2.0

    @jit
    def f(x):
        y = x * IN_SLOTS.k
        if x.sum() > 0:
            y = HELD(y)
        return HELD(y) * Answered.late

    out = []
    for k in range(4):
        del ASKED[:]
        out += [f(two() - k), [name for name in ASKED if name != "late"]]
    return out


class Rank(enum.IntEnum):
    FIRST, LAST = 0, 1


class Parts(enum.Flag):
    SCALE, SHIFT = 1, 2


def members_of_enums_as_numbers(jit):
    parts = Parts.SCALE | Parts.SHIFT
    chosen = types.SimpleNamespace(rank=Rank.FIRST, parts=parts, rows=slice(0, 2))

    @jit
    def f(x):
        y = x[chosen.rows] * 2 if chosen.parts & Parts.SCALE else x[chosen.rows]
        return (y + 10 if chosen.parts & Parts.SHIFT else y) + x[chosen.rank]

    out = [f(tj.arange(3.0)), f(tj.arange(3.0))]
    chosen.rank, chosen.rows = Rank.LAST, slice(1, 3)
    out += [f(tj.arange(3.0)), f(tj.arange(3.0))]
    chosen.parts = Parts.SHIFT
    return [*out, f(tj.arange(3.0)), str(chosen.rank), repr(Rank.LAST)]


def attributes_of_the_captured_function(jit):
    @jit
    def f(x):
        f.calls += 1
        f.last = x * f.calls
        return f.last * f.gain

    f.calls, f.gain = 0, 2.0
    out = [f(tj.ones(2)) for _ in range(3)]
    f.gain = 3.0
    return [*out, f(tj.ones(2)), f.calls, f.last]


def locks_patterns_and_kinds_beside(jit):
    class Model:
        def __init__(self):
            self.lock, self.pattern, self.kinds = threading.Lock(), re.compile("a+"), int | float

        def __call__(self, x, k):
            return x * k if isinstance(k, self.kinds) else x + 1

    f = jit(Model())
    return [f(tj.ones(2), k) for k in (2, 2.5, None, 3)]


PROGRAMS = programs_in(globals())
