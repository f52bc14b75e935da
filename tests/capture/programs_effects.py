"""Programs with effects and sources outside of tensors: clocks, iterators, numbers read, errors."""

from __future__ import annotations

import dataclasses

import numpy as np

import tracejit as tj
from tests.capture.program_inputs import MANY, OTHER, TAKEN
from tests.capture.program_list import programs_in


def branch_on_value(jit):
    @jit
    def f(x):
        if x.sum() > 0:
            return x * 2
        return x - 1

    return [f(tj.ones(2)), f(-tj.ones(2)), f(tj.ones(2))]


def while_on_value(jit):
    @jit
    def f(x):
        steps = 0
        while x.abs().max() > 1:
            x = x / 2
            steps += 1
        return x, steps

    return [f(tj.ones(2) * k) for k in (10, 1, 1000)]


def item_logged(jit):
    losses = []

    @jit
    def f(x):
        y = (x * 2).sum()
        losses.append(y.item())
        return y

    return [f(tj.ones(2)), f(tj.ones(3)), losses]


def python_number_of_a_tensor(jit):
    f = jit(lambda x, i: x[int(i)] * float(x[0]))
    return [f(tj.arange(3.0) + 1, tj.tensor(k)) for k in (0, 2, 1)]


def attribute_counter(jit):
    class Counter:
        steps = 0

    counter = Counter()

    @jit
    def f(x):
        counter.steps += 1
        return x * counter.steps

    return [f(tj.ones(1)), f(tj.ones(1)), counter.steps]


def clock_is_read(jit):
    import time

    @jit
    def f(x):
        return x * (0.0 if time.time() > 0 else 1.0), time.perf_counter()

    a, b = f(tj.ones(1)), f(tj.ones(1))
    return [a[0], b[0], b[1] > a[1]]


def python_random(jit):
    import random

    @jit
    def f(x):
        return x * random.random()

    random.seed(0)
    return [f(tj.ones(1)), f(tj.ones(1)), f(tj.ones(1))]


def numpy_random(jit):
    rng = np.random.default_rng(0)

    @jit
    def f(x):
        return x * float(rng.normal())

    return [f(tj.ones(1)), f(tj.ones(1))]


def numpy_table(jit):
    table = np.array([1.0, 2.0])

    @jit
    def f(x):
        return x * float(table[1])

    out = [f(tj.ones(1))]
    table[1] = 50.0
    return [*out, f(tj.ones(1))]


def iterator_consumed(jit):
    numbers = iter([1.0, 2.0, 3.0])

    @jit
    def f(x):
        return x * next(numbers)

    return [f(tj.ones(1)), f(tj.ones(1)), f(tj.ones(1))]


def generator_of_tensors(jit):
    @jit
    def f(xs):
        return sum(x * 2 for x in xs) + max(len(x) for x in xs)

    return [f([tj.ones(2), tj.ones(2)]), f([tj.ones(3)])]


def random_draws(jit):
    @jit
    def f(x):
        return x + tj.rand(3), tj.randn(2)

    tj.manual_seed(1)
    out = [f(tj.zeros(3)), f(tj.zeros(3)), tj.rand(2)]
    tj.manual_seed(1)
    return [*out, f(tj.zeros(3)), tj.rand(2)]


def seeded_inside_each_call(jit):
    @jit
    def f(x):
        tj.manual_seed(5)
        return x + tj.rand(2)

    return [f(tj.zeros(2)), f(tj.zeros(2)), tj.rand(1)]


def explicit_generator(jit):
    generator = tj.Generator()
    generator.manual_seed(9)
    f = jit(lambda x: x + tj.rand(2, generator=generator))
    out = [f(tj.zeros(2)), f(tj.zeros(2))]
    generator.manual_seed(9)
    return [*out, f(tj.zeros(2)), generator.initial_seed()]


def exception_after_write(jit):
    @jit
    def f(x, n):
        x.add_(1)
        if n > 1:
            raise ValueError("too many")
        return x * n

    x = tj.zeros(2)
    out = [f(x, 1)]
    try:
        f(x, 2)
    except ValueError as error:
        out.append(error)
    return [*out, x, f(x, 1)]


def class_attribute_set(jit):
    class Counter:
        calls = 0

    def f(x):
        Counter.calls += 1
        return x * Counter.calls

    g = jit(f)
    return [g(tj.ones(1)), g(tj.ones(1)), g(tj.ones(1)), Counter.calls]


def set_changed(jit):
    seen = set()

    @jit
    def f(x):
        seen.add(x.shape[0])
        return x * len(seen)

    return [f(tj.ones(1)), f(tj.ones(2)), f(tj.ones(2)), sorted(int(n) for n in seen)]


def global_made_inside(jit):
    globals().pop("MADE_INSIDE", None)

    @jit
    def f(x):
        global MADE_INSIDE
        MADE_INSIDE = x * 2
        return x

    out = []
    for k in range(3):
        f(tj.ones(1) * k)
        out.append(MADE_INSIDE.clone())
    return out


def dict_order_and_deletion(jit):
    state = {"a": 1.0, "b": 2.0, "c": 3.0}

    @jit
    def f(x):
        for k, value in enumerate(list(state.values())):
            x = x * 10 + value * (k + 1)
        if "b" in state:
            del state["b"]
        return x

    out = [f(tj.zeros(1)), f(tj.zeros(1))]
    state["b"] = 5.0
    out += [f(tj.zeros(1)), sorted(state)]
    state.clear()
    state.update(c=3.0, a=1.0)
    return [*out, f(tj.zeros(1))]


def warnings_and_try(jit):
    @jit
    def f(x, key):
        try:
            scale = {"a": 2.0}[key]
        except KeyError:
            scale = -1.0
        finally:
            x = x + 1
        return x * scale

    return [f(tj.ones(1), "a"), f(tj.ones(1), "z"), f(tj.ones(1), "a")]


class Cell:
    """An object with attributes."""

    def __init__(self, **values):
        self.__dict__.update(values)


def objects_of_the_caller_that_move(jit):
    def swapped(o, x):
        o.a, o.b = o.b, o.a
        return o.a * x

    def shifted(o, x):
        before, o.a = o.a, x
        o.b = before
        return before

    def popped(o, x):
        return o.kept.pop()

    def popped_and_stored(o, x):
        o.a = o.kept.pop(0)
        o.kept.append(x)
        return o.a, o.kept[0]

    def reversed_in_place(o, x):
        o.kept.reverse()
        return o.kept[0], o.kept.pop()

    def lists_swapped(o, x):
        o.kept, o.more = o.more, o.kept
        o.kept.append(x)
        return o.more[0]

    def list_left_behind(o, x):
        kept, o.kept = o.kept, None
        kept.append(x * 2)
        return x

    def emptied_by_key(o, x):
        o.named["a"], o.named["b"] = o.named["b"], o.named["a"]
        return o.named.pop("a")

    def object_left_behind(o, x):
        inner, o.inner = o.inner, Cell(a=x)
        inner.a = x * 2
        return o.inner.a

    def program(way):
        f, out = jit(way), []
        for k in range(4):
            a, b, c = (tj.tensor([1.0 + k, j]) for j in (2.0, 3.0, 4.0))
            o = Cell(a=a, b=b, kept=[a, b], more=[c], named={"a": a, "b": b}, inner=Cell(a=c))
            before = [o.kept, o.more, o.named, o.inner]
            out += [f(o, c + 1), f(o, c) if way in (swapped, shifted) else None, o, before]
        return out

    ways = [swapped, shifted, popped, popped_and_stored, reversed_in_place, lists_swapped,
            list_left_behind, emptied_by_key]  # fmt: skip
    return [program(way) for way in (*ways, object_left_behind)]


def values_that_equal_what_they_replace(jit):
    pairs = [(0.0, -0.0), (True, 1), (1, True), (1, 1.0), (0, False), (2.0, 2)]

    def program(before, after):
        items, table = [before], {"k": before}

        @jit
        def f(x):
            items[0] = table["k"] = holder.value = after
            return x + 1

        holder, out = Cell(), []
        for _ in range(3):
            holder.value = items[0] = table["k"] = before
            out += [f(tj.ones(2)), holder.value, list(items), dict(table)]
        return out

    return [program(*pair) for pair in pairs]


def keys_removed_from_a_dict(jit):
    def program(remove):
        table = {}

        @jit
        def f(x):
            remove(table)
            table["b"] = x * 2
            return x + 1

        out = []
        for _ in range(3):
            table.clear()
            table.update(a=1, b=2)
            out += [f(tj.ones(2)), dict(table)]
        return out

    return [program(way) for way in (lambda d: d.pop("a"), dict.clear, lambda d: d.popitem())]


def one_container_in_several_places(jit):
    def stored(x, w, kept):
        made = [x * 2]
        kept["a"], kept["b"] = made, (made, made)
        return {"c": made, "d": kept}

    def filled_in_a_loop(x, w, kept):
        made = []
        for k in range(MANY):
            made.append(x * k)
        kept["a"] = kept["b"] = made
        return made

    def of_what_may_be_an_argument(x, w, kept):
        y = x if x.sum() > 0 else w
        made = [(y, x)]
        kept["a"] = {"deep": made}
        return made, made, kept

    def the_callers_own(x, w, kept):
        kept["a"] = x if x.sum() > 0 else w
        return kept

    def decided_by_its_value(x, w, kept):
        y = x if x.sum() > 0 else w
        if x.sum().item() > 100:
            return x
        kept["a"] = [{"deep": (y, x)}]
        return kept["a"]

    def program(way):
        f, out = jit(way), []
        for values in (TAKEN, OTHER, TAKEN, OTHER):
            x, w, kept = tj.tensor(values), tj.ones(3), {}
            y = f(x, w, kept)
            objects: list = []
            places = [numbered(t, objects) for t in (x, w, kept, y)]
            out += [x, w, kept, y, places]
        return out

    ways = (stored, filled_in_a_loop, of_what_may_be_an_argument, the_callers_own,
            decided_by_its_value)
    return [program(way) for way in ways]


def numbered(value, objects):
    """Which objects are one: each with the number of the first that is the same."""
    number = next((k for k, x in enumerate(objects) if x is value), len(objects))
    objects += [value][number < len(objects):]
    parts = value.values() if isinstance(value, dict) else value
    inner = [] if isinstance(value, tj.Tensor) else [numbered(x, objects) for x in parts]
    return [number, inner]


def two(k):
    return tj.tensor([1.0, -2.0]) * k


def attributes_set_past_the_class(jit):
    @dataclasses.dataclass(frozen=True)
    class Frozen:
        scale: float = 2.0
        last: object = None

        def keep(self, x):
            object.__setattr__(self, "last", x * self.scale)
            return self.last

    class Note:
        last, on = 0.0, False

    cfg, note, box = Frozen(), Note(), Note()

    @jit
    def f(x):
        object.__setattr__(note, "last", 3.0)
        object.__setattr__(note, "on", True)
        return cfg.keep(x)

    @jit
    def g(x):
        object.__delattr__(box, "stale")
        return x * 2

    @jit
    def computed(x, name):
        put(note, name, x)
        return x * 3

    def put(owner, name, value):
        object.__setattr__(owner, name, value)

    out = []
    for k in range(4):
        box.stale = 1
        out += [f(two(k)), cfg.last, note.last, note.on, g(two(k)), sorted(vars(box))]
        out += [computed(two(k), "new" * (k // 2 + 1)), sorted(vars(note))]
        note.last, note.on = float(-k), False
    return out


def attributes_that_their_class_sets(jit):
    class Doubling:
        def __setattr__(self, name, value):
            object.__setattr__(self, name, value * 2)

    class Counting:
        def __init__(self):
            object.__setattr__(self, "writes", 0)
            object.__setattr__(self, "log", [])

        def __setattr__(self, name, value):
            object.__setattr__(self, "writes", self.writes + 1)
            self.log.append(name)
            super().__setattr__(name, value)

    class Kept:
        y = property(lambda self: self.__dict__["y"])

        @y.setter
        def y(self, value):
            self.__dict__["y"] = value + 1

    doubling, counting, kept = Doubling(), Counting(), Kept()
    doubling.y = kept.y = 1.0

    @jit
    def f(x):
        old = doubling.y + kept.y
        doubling.y = kept.y = x + 1
        counting.y = x * 2
        counting.n = 3.0
        return x * old + counting.writes

    out = []
    for k in range(5):
        out += [f(two(k)), doubling.y, kept.y, counting.y, counting.n]
        out += [counting.writes, list(counting.log)]
    return out


def attributes_in_the_order_of_their_making(jit):
    class Box:
        pass

    @jit
    def f(x, box):
        box.z = x * 2
        box.a, box.k = 1.0, x
        return x * 3

    boxes = [Box() for _ in range(4)]
    return [f(two(1.0), box) for box in boxes], [list(box.__dict__) for box in boxes]


def methods_that_alone_hold_containers(jit):
    tensors, numbers, known = [], [0], {"n": 0}
    keep, count, update = tensors.append, numbers.append, known.update

    @jit
    def keeps(x):
        y = x * 2
        keep(y)
        return y + 1

    @jit
    def counts(x):
        count(x.shape[0])
        return x * 2

    @jit
    def updates(x, n):
        update(n=n, m="m")
        return x * n

    out = []
    for k in range(4):
        out += [keeps(two(float(k))), counts(two(1.0)), updates(two(1.0), 3), known.pop("m")]
    return out, tensors, numbers, known, len({id(t) for t in tensors})


def contents_read_by_a_kept_method(jit):
    scales = {"a": tj.ones(2), "n": 2}
    scale = scales.get
    f = jit(lambda x: x * scale("a") * scale("n"))
    out = [f(two(1.0))]
    scales["n"] = 3
    out.append(f(two(1.0)))
    scales["a"] = tj.zeros(2)
    return [*out, f(two(1.0))]


PROGRAMS = programs_in(globals())
