"""Programs that call functions which keep what they gave: what they give is asked again."""

from __future__ import annotations

import contextlib
import functools

import tracejit as tj
from tests.capture.program_list import programs_in

STATE = {"scale": 2.0}


@functools.lru_cache
def scale(name):
    return STATE[name]


def kept_number_is_asked_again(jit):
    scale.cache_clear()
    STATE["scale"] = 2.0
    x = tj.ones(2)
    f = jit(lambda: x * scale("scale"))
    out = [f() for _ in range(4)]
    STATE["scale"] = 3.0
    out += [f(), f()]
    out.append(scale.cache_info()[:2])
    scale.cache_clear()
    return [*out, f(), f()]


def kept_text_and_tuple(jit):
    made = []

    @functools.cache
    def shape_of(name, rank=2):
        made.append(name)
        return (2,) * rank, name.upper()

    def f(x, name):
        shape, text = shape_of(name, rank=2)
        return x.expand(shape), text

    g = jit(f)
    out = [g(tj.ones(1), name) for name in ("a", "a", "b", "a", "b", "a")]
    return [*out, made, shape_of.cache_info()[:2]]


def kept_result_that_is_only_named(jit):
    x = tj.ones(2)
    f = jit(lambda wanted: x * (scale("scale") if wanted else 1.0))
    return [f(False), f(False), f(False)]


def kept_function_that_is_replaced(jit):
    held = {"f": functools.cache(lambda n: n + 1.0)}
    x = tj.ones(2)
    f = jit(lambda: x * held["f"](2))
    out = [f() for _ in range(3)]
    held["f"] = functools.cache(lambda n: n + 5.0)
    return [*out, f(), f()]


def kept_result_of_a_function_with_an_effect(jit):
    log = []

    @functools.cache
    def gain(n):
        log.append(n)
        return 2.0 * n

    f = jit(lambda x: x * gain(3) * gain(3))
    x = tj.ones(2)
    out = [f(x), f(x), f(x), list(log)]
    gain.cache_clear()
    return [*out, f(x), f(x), f(x), list(log), gain.cache_info()[:2]]


def kept_result_that_depends_on_a_number(jit):
    @functools.cache
    def gain(n):
        return n * 2

    f = jit(lambda x, n: x * gain(n) + gain(x.shape[0]))
    x = tj.ones(2)
    out = [f(x, n) for n in (1, 2, 2, 1, 3, 3, 1)]
    return [*out, f(tj.ones(3), 1), f(tj.ones(3), 1)]


def kept_result_on_a_way_not_taken(jit):
    ran = []

    @functools.cache
    def gain(n):
        ran.append(n)
        return 2.0 * n

    def f(x):
        if x.sum() > 0:
            return x * gain(1)
        return x * gain(2)

    g = jit(f)
    x = tj.ones(2)
    return [g(x), g(x), g(x), list(ran), g(-x), g(-x), list(ran)]


def kept_result_called_by_other_code(jit):
    held = {"scale": 2.0}

    @functools.cache
    def gain(n):
        return held["scale"] * n

    f = jit(lambda x: x * sum(map(gain, [1, 2, 3])))
    x = tj.ones(2)
    out = [f(x) for _ in range(3)]
    held["scale"] = 5.0
    gain.cache_clear()
    return [*out, f(x), f(x)]


def kept_result_of_a_method(jit):
    class Own:
        def __init__(self, scale):
            self.scale = scale

        @functools.lru_cache  # noqa: B019
        def gain(self, n):
            return self.scale * n

    f = jit(lambda own, x: x * own.gain(2))
    x, one, other = tj.ones(2), Own(2.0), Own(3.0)
    out = [f(own, x) for own in (one, one, other, other, one)]
    one.scale = 7.0
    out += [f(one, x)]
    Own.gain.cache_clear()
    return [*out, f(one, x), f(other, x)]


def kept_static_method(jit):
    class Own:
        scale = 2.0

        @staticmethod
        @functools.lru_cache
        def gain(n):
            return Own.scale * n

    f = jit(lambda x: x * Own.gain(2))
    x = tj.ones(2)
    out = [*[f(x) for _ in range(3)], Own.gain.cache_info()[:2]]
    Own.scale = 5.0
    out.append(f(x))
    Own.gain.cache_clear()
    return [*out, f(x), f(x)]


def attribute_of_a_kept_function(jit):
    @functools.cache
    def gain(n):
        return 2.0 * n

    gain.more = 1.0
    f = jit(lambda x: x * gain(2) * gain.more)
    x = tj.ones(2)
    out = [f(x) for _ in range(3)]
    gain.more = 4.0
    return [*out, f(x), f(x)]


def kept_result_that_raises_later(jit):
    held = {"scale": 2.0}

    @functools.cache
    def gain(name):
        return held[name]

    def f(x):
        try:
            return x * gain("scale")
        except KeyError:
            return x

    g = jit(f)
    x = tj.ones(2)
    out = [g(x) for _ in range(3)]
    gain.cache_clear()
    del held["scale"]
    return [*out, g(x), g(x)]


def kept_result_asked_after_what_the_program_writes(jit):
    held = {"scale": 5.0}
    gain = functools.lru_cache(lambda: held["scale"])

    def f(x):
        held["scale"] = 5.0
        return x * gain()

    g, x, out = jit(f), tj.ones(2), []
    for changed in (False, False, False, True, True):
        if changed:
            gain.cache_clear()
            held["scale"] = 2.0
        out.append(g(x))
    return [*out, gain.cache_info()[:2]]


def kept_function_that_fails_once_for_each_call(jit):
    log = []

    @functools.lru_cache
    def gain(n):
        log.append(n)
        if len(log) > 1:
            raise ValueError(n)
        return 2.0

    g, x, out = jit(lambda x: x * gain(3)), tj.ones(2), []
    for changed in (False, False, False, True, True):
        if changed:
            gain.cache_clear()
        try:
            out.append(g(x))
        except ValueError:
            out.append(len(log))
    return out


def kept_result_of_one_of_two_segments(jit):
    log = []

    @functools.lru_cache
    def gain(n):
        log.append(n)
        return float(n)

    def f(x):
        y = x * gain(1)
        log.append(float(y.sum()))
        return y * gain(2)

    g, x = jit(f), tj.ones(2)
    out = [g(x) for _ in range(4)]
    gain.cache_clear()
    return [*out, g(x), g(x), log]


def kept_calls_of_others_are_counted(jit):
    held = {"scale": 1.0}
    one, two = functools.cache(lambda n: n), functools.cache(lambda: held["scale"])
    f, x = jit(lambda x: x * one(1) * two()), tj.ones(2)
    out = [f(x) for _ in range(3)]
    held["scale"] = 3.0
    two.cache_clear()
    out += [f(x) for _ in range(3)]
    return [*out, one.cache_info()[:2], two.cache_info()[:2]]


def kept_function_given_an_item(jit):
    given = []

    @functools.cache
    def gain(n):
        given.append(n)
        return n * 2

    f = jit(lambda x: x * gain(x.sum().item()))
    return [*[f(tj.ones(n)) for n in (2, 2, 2, 3, 2)], given, gain.cache_info()[:2]]


def kept_result_of_a_class(jit):
    @functools.cache
    def place(kind):
        return kind.__module__.split(".")[0], kind.__name__

    class Named(tj.Tensor):
        pass

    def f(x, other):
        return x * len(place(x.__class__)[1]), place(type(other))[1]

    g = jit(f)
    x = tj.ones(2)
    out = [g(x, 1), g(x, 1), g(x, 1), g(x, 2.0), g(x, "a"), g(x, "a"), g(x.as_subclass(Named), 1)]
    return [*((y + 0).tolist() for y, _ in out), *(name for _, name in out)]


class Adds:
    def __init__(self, name):
        self.name = name

    def __call__(self, x, name=None):
        return x * scale(name or self.name)


def kept_number_in_an_object_that_is_called(jit):
    scale.cache_clear()
    STATE.update(scale=2.0, other=5.0)
    first, second = Adds("scale"), Adds("other")
    f = jit(lambda x, k: first(x) + second(x, name="scale" if k else None))
    x = tj.ones(2)
    out = [f(x, k) for k in (0, 1, 0, 0, 1, 1)]
    first.name = "other"
    out += [f(x, 1), f(x, 1)]
    Adds.__call__, before = lambda self, x, name=None: x - 1, Adds.__call__
    out += [f(x, 1), f(x, 1)]
    Adds.__call__ = before
    return [*out, f(x, 1), scale.cache_info().misses]


def kept_results_asked_for_by_a_generator(jit):
    @functools.lru_cache
    def gain(name, *, extra=0.0):
        return {"a": 2.0, "b": 3.0}[name] + extra

    @contextlib.contextmanager
    def scaled(name):
        yield gain(name) + gain(name, extra=1.0)

    @jit
    def f(x, name):
        with scaled(name) as factor:
            return x * factor

    x = tj.ones(2)
    out = [f(x, name) for name in ("a", "a", "a", "b", "b", "b", "a")]
    out.append(gain.cache_info()[:2])
    gain.cache_clear()
    return [*out, f(x, "a"), f(x, "a"), f(x, "b"), gain.cache_info()[:2]]


def kept_results_of_a_generator_that_change(jit):
    state = {"gain": 2.0}

    @functools.cache
    def gain():
        return state["gain"]

    class Scale:
        @property
        def factor(self):
            return next(gain() for _ in range(1))

    @jit
    def f(x, scale):
        return x * scale.factor

    x, scale = tj.ones(2), Scale()
    out = [f(x, scale) for _ in range(3)]
    state["gain"] = 5.0
    out.append(f(x, scale))
    gain.cache_clear()
    return [*out, f(x, scale), f(x, scale), gain.cache_info()[:2]]


def kept_results_that_may_change_asked_for_by_a_generator(jit):
    @functools.cache
    def gains(n):
        return [float(n)]

    @contextlib.contextmanager
    def of(n):
        yield gains(n)

    @jit
    def f(x):
        with of(3) as found:
            found[0] += 1
            return x * found[0]

    return [f(tj.ones(2)) for _ in range(4)]


PROGRAMS = programs_in(globals())
