"""Programs that return or store objects of the user's classes, make classes, and write to classes
through their objects."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
import threading
from collections import OrderedDict
from types import SimpleNamespace

import numpy as np

import tracejit as tj
from tests.capture.program_list import programs_in


@dataclasses.dataclass
class Pair:
    first: object
    second: object = 3

    def __post_init__(self):
        self.both = [self.first, self.second]


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: object
    inner: object = None


@dataclasses.dataclass(slots=True)
class Slim:
    value: object
    count: int = 0


class Slotted:
    __slots__ = ("here", "missing", "__dict__")

    def __init__(self, here):
        self.here = here
        self.more = {"k": here}


@dataclasses.dataclass
class Output(OrderedDict):
    logits: object = None
    loss: object = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if getattr(self, field.name) is not None:
                super().__setitem__(field.name, getattr(self, field.name))

    def __getitem__(self, key):
        return dict(self.items())[key] if isinstance(key, str) else tuple(self.values())[key]


def shown(value):
    """A value with the classes, slots and attributes of all it holds."""
    if isinstance(value, tj.Tensor):
        return value.requires_grad, value.tolist()
    if isinstance(value, dict):
        own = {k: shown(v) for k, v in getattr(value, "__dict__", {}).items()}
        return type(value).__name__, [(k, shown(v)) for k, v in value.items()], own
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [shown(v) for v in value]
    if type(value) in (int, float, str, type(None)):
        return value
    slots = [n for c in type(value).__mro__ for n in getattr(c, "__slots__", ())]
    told = {n: shown(getattr(value, n)) for n in slots if n != "__dict__" and hasattr(value, n)}
    own = {k: shown(v) for k, v in getattr(value, "__dict__", {}).items()}
    return type(value).__name__, told, own


def objects_that_are_returned(jit):
    def f(x, n):
        pair = Pair(x * n, n + 1)
        return {
            "pair": pair, "again": pair, "frozen": Frozen(x + 1, Frozen(pair)),
            "slim": Slim(x.sum(), n), "slotted": Slotted(x - 1),
            "space": SimpleNamespace(x=x, mean=x.mean().item()), "output": Output(logits=x * 2),
        }  # fmt: skip

    f = jit(f)
    found = []
    for n in (1, 2, 3):
        x = tj.arange(3.0) + n
        given = f(x, n)
        same = given["pair"] is given["again"] is given["frozen"].inner.value
        lists = given["pair"].both[0] is given["pair"].first
        found.append((shown(given), same, lists, given["space"].x is x, given["output"][0].sum()))
    return found


def returned_objects_are_new_each_time(jit):
    def f(x):
        return Pair(x * 2, [])

    f = jit(f)
    first = f(tj.ones(2))
    first.second.append(5)
    first.extra = 1
    later = [f(tj.ones(2)) for _ in range(2)]
    Pair.third = 9
    later.append(f(tj.ones(2)))
    found = [(shown(p), p.third, p is first) for p in later]
    del Pair.third
    return shown(first), found


def objects_that_are_stored(jit):
    holder = SimpleNamespace(last=None, log=[])

    def f(x):
        before = 0 if holder.last is None else holder.last.value.sum()
        holder.last = Frozen(x * 2)
        holder.log.append(Slim(x.sum(), len(holder.log)))
        return x + before

    f = jit(f)
    found = [f(tj.ones(2) * k) for k in range(4)]
    holder.last = Frozen(tj.ones(2) * 10)
    return [*found, f(tj.ones(2))], shown(holder.last), shown(holder.log)


def objects_of_the_caller_are_given_back(jit):
    mine = Pair(tj.ones(2))

    def f(x):
        return Frozen(mine, mine.first * x)

    f = jit(f)
    found = [f(tj.ones(2)) for _ in range(3)]
    mine.first = tj.ones(2) * 4
    found.append(f(tj.ones(2)))
    return [shown(x) for x in found], all(x.value is mine for x in found)


def gradients_through_returned_objects(jit):
    def f(x):
        return Pair(x * x, Frozen((x * 3).sum()))

    f = jit(f)
    found = []
    for _ in range(3):
        x = tj.ones(2, requires_grad=True)
        made = f(x)
        (made.first.sum() + made.second.value).backward()
        found.append(x.grad)
    return found


def properties_that_are_kept(jit):
    class Layer:
        def __init__(self, weight):
            self.weight = weight

        @functools.cached_property
        def double(self):
            return self.weight * 2

    mine = Layer(tj.ones(2))

    def f(x):
        return Layer(x).double + mine.double

    f = jit(f)
    found = [f(tj.ones(2)) for _ in range(3)]
    mine.weight = tj.ones(2) * 5
    found.append(f(tj.ones(2)))
    del mine.double
    return [*found, f(tj.ones(2)), f(tj.ones(2)), mine.double]


def classes_made_in_the_call(jit):
    settings = SimpleNamespace(scale=2)

    def f(x):
        y = x + 1

        class Scaled(tj.nn.Module):
            factor = settings.scale

            def forward(self, x):
                return x * self.factor + y

        class Square(tj.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, grad):
                return grad * 7

        return Scaled()(Square.apply(x))

    f = jit(f)
    found = []
    for scale in (2, 2, 3, 3):
        settings.scale = scale
        x = tj.ones(2, requires_grad=True)
        made = f(x)
        made.sum().backward()
        found.append((made.detach(), x.grad))
    return found


def instances_of_classes_made_in_the_call(jit):
    def f(x):
        class Here:
            def __init__(self, x):
                self.x = x

        return Here(x * 2)

    f = jit(f)
    found = [f(tj.ones(2)) for _ in range(3)]
    return [shown(x) for x in found], len({type(x) for x in found})


def counters_of_classes(jit):
    class Counter:
        calls = 0
        seen = None

        def __call__(self, x):
            type(self).calls += 1
            self.__class__.seen = x * 2
            return x + 1

    class Other(Counter):
        calls = 5

    counters = Counter(), Other()

    def f(x, k):
        return counters[k](x)

    f = jit(f)
    found = [f(tj.ones(2) * n, n % 2) for n in range(6)]
    return found, Counter.calls, Other.calls, Counter.seen, Other.seen


def numbers_of_threads(jit):
    def f(x):
        main = threading.current_thread() is threading.main_thread()
        return x * (2 if main else 3), threading.get_ident() == threading.main_thread().ident

    f = jit(f)
    found = [f(tj.ones(2)) for _ in range(3)]
    # One other thread: a second one may be given the number of the first, or another.
    thread = threading.Thread(target=lambda: found.extend(f(tj.ones(2)) for _ in range(3)))
    thread.start()
    thread.join()
    return [*found, f(tj.ones(2))]


def exceptions_that_the_caller_handles(jit):
    def f(x):
        with contextlib.ExitStack() as stack:
            stack.enter_context(tj.no_grad())
            y = x * 2
        return y + (1 if sys.exc_info()[0] is None else 5), sys.exc_info()[1] is None

    f = jit(f)
    found = [f(tj.ones(2)) for _ in range(3)]
    try:
        raise ValueError
    except ValueError:
        found += [f(tj.ones(2)), f(tj.ones(2))]
    return [*found, f(tj.ones(2))]


def kinds_of_exceptions_that_the_call_handles(jit):
    def f(x, kind):
        try:
            raise kind("it")
        except (ValueError, KeyError):
            found = sys.exc_info()[0]
        return x * len(found.__name__)

    f = jit(f)
    return [f(tj.ones(2), kind) for kind in (ValueError, ValueError, KeyError, ValueError)]


def arrays_that_are_broadcast(jit):
    def f(x, n):
        wide = np.broadcast_to(np.arange(2.0), (n, 2))
        return x * float(wide.sum())

    f = jit(f)
    return [f(tj.ones(2), n) for n in (2, 2, 3, 3, 2)]


PROGRAMS = programs_in(globals())
