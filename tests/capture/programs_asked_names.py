"""Programs that ask objects and modules for attributes by names that they compute: through
`getattr` under other names, getters, callers and formats that C code calls, modules in containers
and of calls, and `setattr`."""

from __future__ import annotations

import builtins
import functools
import importlib
import operator
import sys
import types

from tests.capture.program_inputs import Box, many, two
from tests.capture.program_list import programs_in


def module(name, **held):
    """A module that can be imported."""
    made = types.ModuleType(name)
    vars(made).update(held)
    sys.modules[name] = made
    return made


def modules_in_containers(jit):
    one, other = module("asked_one", gain=2.0, k=3.0), module("asked_other", gain=5.0)
    held, table = Box(modules=[one], name="gain"), {"one": one}
    f = jit(lambda x: x * getattr(held.modules[0], held.name))
    g = jit(lambda x: x * getattr(table["one"], held.name, 0.5))
    out = many(f, g)
    one.gain = 7.0
    out += many(f, g)
    held.modules[0] = other
    del one.gain
    out += many(f, g)
    held.name, held.modules = "k", [one]
    out += many(f, g)
    one.k = 10.0
    return out + many(f, g)


def modules_that_calls_return(jit):
    one, names = module("asked_one", gain=2.0), ["gain"]

    table = {"asked_one": one}

    def find(name):
        return table[name]

    f = jit(lambda x: x * getattr(find("asked_one"), names[0]))
    g = jit(lambda x: x * getattr(importlib.import_module("asked_one"), names[0]))
    out = many(f, g)
    one.gain = 4.0
    out += many(f, g)
    one.late, names[0] = 5.0, "late"
    out += many(f, g)
    table["asked_one"] = module("asked_one", late=100.0)
    return out + many(f, g)


def made_from_a_dotted_path(jit):
    one = module("asked_one", times=lambda k: lambda x: x * k)
    config = Box(target="asked_one.times", k=2.0)

    def made(path, k):
        home, _, name = path.rpartition(".")
        return getattr(importlib.import_module(home), name)(k)

    f = jit(lambda x: made(config.target, config.k)(x))
    out = many(f)
    one.times = lambda k: lambda x: x + k
    out += many(f)
    one.less = lambda k: lambda x: x - k
    config.target = "asked_one.less"
    out += many(f)
    one.less = lambda k: lambda x: x / k
    return out + many(f)


asked = getattr


def getattr_of_other_names(jit):
    box, one, names = Box(a=2.0, b=3.0), module("asked_one", a=2.0), ["a"]
    part, table = functools.partial(getattr, box), {"get": getattr}
    functions = [
        jit(lambda x: x * asked(box, names[0])),
        jit(lambda x: x * asked(one, names[0])),
        jit(lambda x: x * asked(box, "late", 10.0)),
        jit(lambda x: x * builtins.getattr(box, names[0])),
        jit(lambda x: x * part(names[0])),
        jit(lambda x: x * table["get"](one, names[0])),
        jit(lambda x: x * list(map(getattr, [one], [names[0]]))[0]),
        jit(lambda x: x * functools.reduce(getattr, ["inner", names[0]], box)),
    ]
    box.inner = Box(a=5.0, b=6.0)
    out = many(*functions)
    box.a, one.a, box.late, box.inner.a = 7.0, 9.0, 4.0, 50.0
    out += many(*functions)
    one.b, names[0] = 100.0, "b"
    out += many(*functions)
    one.b, box.b, box.inner.b = 1000.0, 33.0, 0.25
    return out + many(*functions)


def attributes_asked_of_object_itself(jit):
    box, ask, names = Box(k=2.0), object.__getattribute__, ["k"]
    f = jit(lambda x: x * ask(box, names[0]))
    g = jit(lambda x: x * box.__getattribute__(names[0]))
    out = many(f, g)
    box.k = 5.0
    out += many(f, g)
    box.j, names[0] = 9.0, "j"
    out += many(f, g)
    box.j = 11.0
    return out + many(f, g)


class Part:
    """Scales."""

    def __init__(self, k):
        self.k = k

    def scale(self, x, by=1.0):
        return x * self.k * by


def methods_that_callers_call(jit):
    parts, caller = [Part(2.0), Part(3.0)], operator.methodcaller("scale", 2.0)
    f = jit(lambda x: sum(map(operator.methodcaller("scale", x), parts)))
    g = jit(lambda x: sum(map(operator.methodcaller("scale", x, by=2.0), parts)))
    h = jit(lambda x: x * caller(parts[1]))
    out = many(f, g, h)
    parts[0].k = 7.0
    out += many(f, g, h)
    parts[1].scale = lambda x, by=1.0: x * 100
    return out + many(f, g, h)


def formats_that_are_handed_on(jit):
    one, other, table = Box(mode="a"), Box(mode="b"), {"text": "{.mode}".format, "str": str.format}
    f = jit(lambda x: x * len("".join(map("{0.mode}".format, [one, other]))))
    g = jit(lambda x: x * len(table["text"](one)))
    h = jit(lambda x: x * len(table["str"]("{0.mode}", other)))
    k = jit(lambda x: x * len(list(map(str.format, ["{0.mode}"], [one]))[0]))
    out = many(f, g, h, k)
    one.mode, other.mode = "long", "longer"
    return out + many(f, g, h, k)


def formats_that_are_attributes(jit):
    image = Box(format="png", seen=0)
    f = jit(lambda x: x * 2 if image.format == "png" else x + 1)
    g = jit(lambda x: x * 2 if image.format in ("png", "gif") else x + 1)
    out = []
    for image.seen in range(4):  # which nobody asks for
        out += [f(two()), g(two())]
    image.format = "jpg"
    return out + many(f, g)


def modules_that_make_attributes_up(jit):
    one = module("asked_one")
    source = "v = 2.0\ndef __getattr__(name):\n    if name == 'gain':\n        return v * 2\n"
    exec(source + "    raise AttributeError(name)\n", vars(one))
    f = jit(lambda x: x * one.gain)
    g = jit(lambda x: x * getattr(one, "none", 3.0))
    h = jit(lambda x: x * one.gain if hasattr(one, "gain") else x)
    out = many(f, g, h)
    one.v = 5.0
    out += many(f, g, h)
    one.gain, one.none = 7.0, 0.5
    out += many(f, g, h)
    del one.gain
    one.__getattr__ = lambda name: 0.25
    return out + many(f, g, h)


def what_vars_and_dir_give(jit):
    box, one = Box(k=2.0, j=3.0), module("asked_one", a=2.0)

    def ordered(x):
        for name, value in vars(box).items():
            x = x * value + len(name) + (name == "k")
        return x

    def own(x):
        y = x * 2
        return y * len(vars()) + len(locals()) + len(dir())

    f = jit(ordered)
    g = jit(lambda x: x * sum(getattr(box, n) for n in dir(box) if not n.startswith("_")))
    h = jit(lambda x: x * sum(getattr(one, n) for n in dir(one) if not n.startswith("_")))
    k = jit(own)
    out = many(f, g, h, k)
    first = box.k
    del box.k
    box.k, one.a = first, 5.0
    out += many(f, g, h)
    Box.of_class, one.c, box.new = 7.0, 9.0, 1.0
    out += many(f, g, h)
    del Box.of_class
    return out + many(f, g, h)


def attributes_set_under_computed_names(jit):
    box, names, store = Box(k=2.0, n=0), ["k"], setattr

    def known(x):
        setattr(box, "k", x.sum() * 2)  # noqa: B010
        return x * box.k

    def computed(x):
        store(box, names[0], x * 3)
        setattr(box, "n", box.n + 1)  # noqa: B010
        return x + box.n

    def fresh(x):
        for name in ("p", "q"):
            setattr(box, name + "s", x * 3)
        delattr(box, "ps")
        return box.qs + 1

    f, g, h = jit(known), jit(computed), jit(fresh)
    out = [*many(f), box.k, *many(g), box.k, box.n, *many(h), dict(vars(box))]
    names[0] = "late"
    return [*out, *many(g), vars(box)]


def attributes_that_a_class_stores_under_other_names(jit):
    class Doubling:
        def __setattr__(self, name, value):
            object.__setattr__(self, "_" + name, value * 2)

    class Telling:
        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            self.__dict__["seen_" + name] = True

    one, other = Doubling(), Telling()

    def f(x):
        one.v, other.v = x, x + 1
        return x * 2

    return [*many(jit(f)), vars(one), vars(other)]


def attributes_of_classes_and_modules_set_under_computed_names(jit):
    class Counter:
        k = 2.0

    one, names = module("asked_one", k=2.0), ["k"]

    def f(x):
        setattr(Counter, names[0], Counter.k + 1)
        setattr(one, names[0], x.sum())
        return x * Counter.k

    f = jit(f)
    out = [*many(f), Counter.k, one.k]
    names[0] = "late"
    return [*out, *many(f), Counter.k, Counter.late, one.late]


def chosen(one, other):
    return one if one.first else other


def scaled(x, one, other, name):
    if hasattr(chosen(one, other), "late"):
        return x * getattr(chosen(one, other), name) + 1
    return x * getattr(chosen(one, other), name)


def attributes_of_what_a_call_of_as_many_arguments_returns(jit):
    one, other = Box(k=2.0, gain=3.0, first=True), Box(k=5.0, gain=7.0)
    held = Box(name="k")
    f = jit(lambda x: scaled(x, one, other, held.name))
    out = many(f)
    one.k = 11.0
    out += many(f)
    held.name = "gain"
    out += many(f)
    one.first, other.late = False, True
    out += many(f)
    other.gain = 13.0
    return out + many(f)


PROGRAMS = programs_in(globals())
