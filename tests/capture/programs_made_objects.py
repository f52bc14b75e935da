"""Programs whose calls make objects: containers of classes of their own, parameters; and sizes that
are computed, generators that are the default one."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque, namedtuple

import tracejit as tj
from tests.capture.program_list import programs_in
from tracejit.nn import functional as F


def shown(value):
    """A value with the classes and attributes of all it holds."""
    if isinstance(value, tj.Tensor):
        return type(value).__name__, value.requires_grad, value.tolist()
    attributes = {k: shown(v) for k, v in getattr(value, "__dict__", {}).items()}
    if isinstance(value, dict):
        held = [(k, shown(v)) for k, v in value.items()]
        return type(value).__name__, getattr(value, "default_factory", None), held, attributes
    if isinstance(value, (list, tuple, deque)):
        return type(value).__name__, [shown(v) for v in value], attributes
    return value


def outcome(f, *arguments):
    try:
        return shown(f(*arguments))
    except Exception as error:
        return type(error).__name__, str(error)


def dicts_of_other_classes(jit):
    layer = tj.nn.Linear(2, 1)
    layer.weight.data.fill_(1.0)
    layer.bias.data.fill_(2.0)

    def ordered(x):
        made = OrderedDict(a=x, b=x * 2)
        made.move_to_end("a")
        made.meta = x.shape[0]
        return made

    def grouped(x):
        made = defaultdict(list)
        made["a"].append(x + 1)
        return made

    def stored(x):
        layer.extra = Counter([x.shape[0], 2])
        return x * layer.extra[2]

    functions = [ordered, grouped, stored, lambda x: layer.state_dict(),
                 lambda x: defaultdict(lambda: 5, a=x).copy()["a"], lambda x: deque([x, 1], 3)]
    found = []
    for f in map(jit, functions):
        found.append([(outcome(f, tj.ones(n)), shown(getattr(layer, "extra", None)))
                      for n in (3, 3, 2, 3)])
    grouping = jit(grouped)
    for _ in range(3):
        grouping(tj.ones(2))["new"].append(1)
    return found


class Row(list):
    def __init__(self, *values):
        super().__init__(values)


class Raised(list):
    def __init__(self, values=()):
        super().__init__(v + 1 for v in values)


class Pair(tuple):
    def __new__(cls, a, b):
        return super().__new__(cls, (a, b))


class Slotted(list):
    __slots__ = ("k",)


Point = namedtuple("Point", "a b")


class From(Point):
    def __new__(cls, a):
        return Point.__new__(cls, a, a + 1)


def lists_and_tuples_of_other_classes(jit):
    def tagged(x):
        made = Row(x, x + 1)
        made.best = x * 2
        return made

    def tagged_tuple(x):
        made = From(x)
        made.extra = 3
        return made

    def slotted(x):
        made = Slotted([x])
        made.k = x * 3
        return made, made.k

    functions = [tagged, tagged_tuple, slotted, lambda x: Raised([x]), lambda x: Pair(x, x * 2),
                 lambda x: Point(x, 1), lambda x: (x.shape, x.max(0))]
    return [[outcome(f, tj.ones(n) * k) for k, n in ((1, 3), (2, 3), (3, 2), (4, 3))]
            for f in map(jit, functions)]


class Marked(tj.Tensor):
    """A tensor of the user's."""


class Box:
    """Anything."""


def parameters_that_a_call_makes(jit):
    box, layer = Box(), tj.nn.Linear(1, 1)

    def stored(x):
        box.p = tj.nn.Parameter(x * 2)
        return box.p * 3

    def replaced(x):
        layer.weight = tj.nn.Parameter(x.detach().reshape(-1, 1) * 2)
        return layer.weight.sum()

    functions = [stored, replaced, lambda x: tj.nn.Parameter(x.detach().clone()),
                 lambda x: tj.nn.Parameter(x * 2, requires_grad=False),
                 lambda x: (x * 2).as_subclass(Marked), lambda x: [tj.nn.Parameter(x + 1)]]
    found = []
    for f in map(jit, functions):
        for k in range(4):
            found.append((outcome(f, tj.ones(1) + k), type(layer.weight).__name__,
                          type(getattr(box, "p", None)).__name__))
    return found


def computed_sizes_that_turn_negative(jit):
    functions = [
        lambda x: tj.cat([x, x.new_ones(8 - x.shape[0])]), lambda x: tj.ones(x.shape[0] - 3).sum(),
        lambda x: tj.zeros(x.shape[0] - 3, x.shape[0]).mean(0), lambda x: x[:1].expand(len(x) - 3),
        lambda x: tj.empty(x.shape[0] - 3).shape[0], lambda x: x.view(1, -1).expand(len(x) - 3, -1),
        lambda x: x.as_strided((2,), (x.shape[0] - 3,)), lambda x: x.clone().resize_(len(x) - 3),
        lambda x: F.pad(x, (0, x.shape[0] - 9)), lambda x: F.pad(x, (2 - x.shape[0], 1)),
        lambda x: tj.fft.fft(x, x.shape[0] - 3).real, lambda x: x.repeat(x.shape[0] - 3),
        lambda x: tj.arange(x.shape[0] - 3), lambda x: tj.full((x.shape[0] - 9,), 2.0).shape,
    ]
    found = []
    for f in map(jit, functions):
        found.append([outcome(f, tj.arange(float(n))) for n in (5, 5, 6, 3, 2, 1, 4, 10)])
    return [[o if isinstance(o, tuple) and o[0] != "RuntimeError" else type(o) for o in one]
            for one in found], [[o[0] if isinstance(o, tuple) else o for o in one] for one in found]


def computed_sizes_of_one(jit):
    """A repetition is never a view; a reshape of what lies otherwise is one of one column."""

    def repeated(x, y):
        made = x.repeat(y.shape[0] - 1)
        made += 5
        return made

    def reordered(x, y):
        made = x.view(-1, y.shape[0] - 1).t().reshape(-1)
        made.add_(5)
        return made

    def flat(x, y):
        made = x.view(y.shape[0] // 2, -1).t().flatten()
        made.mul_(2)
        return made

    found = []
    for f in (repeated, reordered, flat, lambda x, y: x.tile(y.shape[0] - 1).add_(1),
              lambda x, y: x.repeat_interleave(y.shape[0] // 2).add_(1)):
        for order in ((3, 2, 3, 2), (2, 3, 2, 3)):
            g = jit(f)
            for n in order:
                x = tj.arange(4.0)
                found.append((outcome(g, x, tj.ones(n)), x))
    return found


def a_generator_that_is_the_default_one(jit):
    found = []
    for order in ("ddgg", "ggdd", "dgdghh", "hgdd"):
        tj.manual_seed(1)
        given = {"d": tj.default_generator, "g": tj.Generator().manual_seed(3),
                 "h": tj.Generator().manual_seed(5)}

        def f(x, g):
            return x * tj.rand(1, generator=g), tj.rand(1)

        f = jit(f)
        found.append([f(tj.ones(1), given[k]) for k in order])
    return found


def gradients_of_powers_at_zero(jit):
    found = []
    for exponent in (-3, -2, -1, -0.5, 0.5, 2, 3, 0, -2.0):
        def f(x, exponent=exponent):
            return (x**exponent).sum()

        f = jit(f)
        for _ in range(2):
            x = tj.tensor([0.0, 2.0, -1.0], requires_grad=True)
            f(x).backward()
            found.append(x.grad)
    return found


PROGRAMS = programs_in(globals())
