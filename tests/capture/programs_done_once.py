"""Programs whose first call does what later calls find done: imports, tables it fills, a warning
that it gives once."""

from __future__ import annotations

import functools
import sys

import tracejit as tj
from tests.capture.program_list import programs_in


def module_imported_within(jit):
    """An import stores the module in its package."""

    def f(x):
        import wsgiref.headers

        return x * len(wsgiref.headers.__name__)

    x = tj.ones(2)
    g = jit(f)
    for name in ("wsgiref.headers", "wsgiref"):
        sys.modules.pop(name, None)
    return [g(x) for _ in range(4)]


def table_of_functions_filled(jit):
    made = {}

    def f(x, name):
        if name not in made:
            made[name] = lambda t: t * len(name)
        return made[name](x)

    x = tj.ones(2)
    g = jit(f)
    out = [g(x, "ab") for _ in range(3)]
    made["ab"] = lambda t: t - 1
    out += [g(x, "ab"), g(x, "abc"), g(x, "abc")]
    del made["ab"]
    return [*out, g(x, "ab"), g(x, "ab"), sorted(made)]


def names_that_were_seen(jit):
    seen = set()

    def f(x):
        if "warned" in seen:
            return x + 1
        seen.add("warned")
        return x

    x = tj.ones(2)
    g = jit(f)
    out = [g(x) for _ in range(4)]
    seen.clear()
    return [*out, g(x), g(x), g(x), sorted(seen)]


def function_stored_at_each_call(jit):
    stored = []

    def f(x):
        stored.append(lambda: 1)
        return x * 2

    x = tj.ones(2)
    g = jit(f)
    return [[g(x) for _ in range(4)], len(stored)]


class Channel:
    """Something that says a text once."""

    def __init__(self):
        self.said = []

    @functools.lru_cache(None)  # noqa: B019
    def once(self, text):
        self.said.append(text)


def said_once_by_a_property(jit):
    """A property is not rewritten, so nobody sees the arguments of the calls it makes."""

    class Model:
        channel = Channel()

        @property
        def scale(self):
            self.channel.once("scaled")
            return 2.0

    model, x = Model(), tj.ones(2)
    first = model.channel
    g = jit(lambda: x * model.scale)
    out = [g() for _ in range(4)]
    Model.channel = second = Channel()
    out += [g(), g(), g()]
    Model.channel = first
    out += [g(), first.said, second.said]
    Channel.once.cache_clear()
    return [*out, g(), g(), first.said, second.said]


def said_once_to_another_that_is_equal_in_all(jit):
    channels = [Channel(), Channel()]
    held = {"channel": channels[0]}

    class Model:
        @property
        def scale(self):
            held["channel"].once("scaled")
            return 2.0

    model, x = Model(), tj.ones(2)
    g = jit(lambda: x * model.scale)
    out = [g() for _ in range(3)]
    channels[0].said.clear()
    held["channel"] = channels[1]
    out += [g(), g()]
    return [*out, [channel.said for channel in channels]]


PROGRAMS = programs_in(globals())
