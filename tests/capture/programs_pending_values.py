"""Numbers and texts that only the program knows, where something else asks for what they are."""

from __future__ import annotations

import functools
import math
import types

import tracejit as tj
from tests.capture.program_inputs import tried
from tests.capture.program_list import programs_in


def quotients_of_numbers_known_later(jit):
    x = tj.ones(2)

    def compared(n, s):
        return x if n > 100 else x * s

    def rounded(n, s):
        return x * s + round(n), s

    def floored(n, s):
        return math.floor(n) + x / (s + n), x * (s * s - n)

    def bounded(n, s):
        return x.clamp(-n, s), x.clamp(-n, n / 5) * s

    def with_another(n, s):
        m = (x * n).sum().item()
        mixed = s + m / 3
        return x * mixed if m < n * 10 else x - mixed

    def made(use):
        @jit
        def f(v):
            n = v.item()
            return use(n, n / 5)

        return f

    uses = [made(use) for use in (compared, rounded, floored, bounded, with_another)]
    calls = [tj.tensor(k) for k in (1.5, 2.5, 300.0, -1.25, 0.3)]
    calls += [tj.tensor(k) for k in (3, 7, 2**53 + 1)]
    return [[f(v) for v in calls] for f in uses]


def texts_compared_and_returned(jit):
    state = types.SimpleNamespace(n=0)

    @jit
    def name():
        state.n += 1
        t = "e" + str(state.n)
        return t if t != "e9" else "last"

    @jit
    def ordered(x):
        t = f"p{state.n}"
        return sorted([t, "p2"]), t in ("p1", "p3"), t, x + 1

    module = tj.nn.Linear(1, 1)

    @jit
    def saved():
        return list(module.state_dict(prefix=f"m{state.n}."))

    shown = []
    for k in (0, 1, 0, 0, 8, 1, 0):
        state.n = k
        shown += [name(), state.n, ordered(tj.ones(1)), saved()]
    return shown


class Meter:
    total, count = 0.0, 0

    def __float__(self):
        return self.total

    def __int__(self):
        return self.count

    def __index__(self):
        return self.count

    def __hash__(self):
        return self.count

    def __eq__(self, other):
        return self is other


class Read:
    __slots__ = ("held",)

    def __float__(self):
        return self.held.mean().item()


def meters_as_numbers(jit):
    meter, read, three, whole = Meter(), Read(), "%.3f", "%d"

    @jit
    def floats(x):
        meter.total += x.mean().item()
        meter.count += 1
        shown = f"{float(meter):.2f}", three % meter, math.sqrt(meter), x * float(meter)
        read.held = x + meter.total
        return *shown, float(read), math.floor(float(read)), meter.total

    @jit
    def ints(x, k):
        meter.count = x.argmax().item() if k else x.shape[0] - 2
        shown = [7, 8, 9, 10][meter], list(range(meter)), hex(meter), hash(meter), whole % meter
        return *shown, int(meter), {meter: x + 1}[meter], meter.count

    @jit
    def given(x, k):
        meter.count, meter.total = k, k / 2
        return "abcdef"[meter], math.exp(meter), x * float(meter), meter.total

    @jit
    def until(x):
        while x.sum() < 20:
            meter.total = x.mean().item()
            x = x + float(meter)
        for _ in range(12):
            x = x + float(meter)
        return x, meter.total

    x = tj.tensor([0.5, 2.0, 1.0])
    shown = [floats(x * k) for k in (1, 1, 3, 2)]
    shown += [ints(x, k) for k in (True, False, True)] + [ints(tj.ones(4), False)]
    shown += [given(x, k) for k in (1, 2, 3, 2)]
    return shown, [until(x * k) for k in (1, 2, 1)], meter.total, meter.count


def options_read_from_tensors_at_the_first_step(jit):
    made = {
        "SGD": {"momentum": 0.5},
        "RMSprop": {"momentum": 0.5, "centered": True},
        "Adagrad": {},
        "Rprop": {},
        "ASGD": {},
        "AdamW": {},
    }

    def stepping(name, option, values, options):
        w = tj.tensor([1.0, -2.0], requires_grad=True)
        optimizer = getattr(tj.optim, name)([w], lr=0.1, **options)

        @jit
        def step(v):
            (w * w).sum().backward()
            optimizer.param_groups[0][option] = v.item()
            optimizer.step()
            optimizer.zero_grad()
            return w.detach().clone()

        return [step(tj.tensor(v)) for v in values], optimizer.state_dict()

    shown = [
        stepping(name, option, (0.5, 0.5, 0.25, 0.5), options)
        for name, options in made.items()
        for option in ("lr", *(x for x in options if x != "centered"))
    ]
    never = stepping("SGD", "momentum", (0.0, 0.0, 0.5), {})
    return shown, never, stepping("SGD", "dampening", (0.25, 0.0, 0.5), {"momentum": 0.5})


def names_made_of_sizes(jit):
    module, table = tj.nn.ModuleDict(), tj.nn.ParameterDict()

    @jit
    def by_size(x):
        k = str(x.shape[0])
        if k not in module:
            module[k] = tj.nn.Identity()
            module.add_module("a" + k, None)
            module.register_buffer(f"b{k}", tj.ones(2))
            module.register_parameter("c" + k, None)
        if "p" + k not in table:
            table["p" + k] = x.new_ones(2)
        return sorted(module), module[k](x) + getattr(module, "b" + k)[0], table["p" + k] * 2

    def given(**named):
        return named

    @jit
    def keywords(x):
        n, total = x.shape[0], x.sum().item()
        made = type("C" + str(n), (), {f"m{n}": 2})
        named = given(**{"k" + str(n): x}, **{f"t{total}": total}, other=n)
        return list(named), named, made.__name__, getattr(made, "m" + str(n))

    @jit
    def refused(x):
        module.add_module(f"s{x.shape[0]}.1", None)

    shown = []
    for n in (2, 3, 3, 4, 2):
        x = tj.ones(n)
        shown += [by_size(x), list(module._buffers), keywords(x), tried(refused, x)]
    return shown, list(module._modules), list(module._parameters), sorted(table)


class Rate(float):
    def __add__(self, other):
        return Rate(float.__add__(self, other))


def unbound_methods_of_number_types(jit):
    rate = Rate(2.0)

    @jit
    def of_floats(x):
        n = x.sum().item()
        texts = float.__format__(n, ".2f"), float.__repr__(n), float.hex(n)
        sums = float.__add__(2.0, n), float.__mul__(n, 2), float.__lt__(n, 3.0)
        return *texts, *sums, float.is_integer(n), list(map(float.__neg__, [n])), x * n

    @jit
    def of_ints(x):
        n = x.argmax().item()
        return int.__sub__(n, 1), int.__sub__(5, n), int.bit_length(n), functools.reduce(
            int.__add__, [n, 3, n])

    @jit
    def of_subclass(x):
        total = rate + x.sum().item()
        return total, type(total) is Rate, x + total

    x = tj.tensor([0.5, 2.0, 1.0])
    return [[f(x * k) for k in (1, 2, -1.5, 1, 2)] for f in (of_floats, of_ints, of_subclass)]


def bits_of_sizes(jit):
    @jit
    def two(x, y):
        m, n = x.shape[0], y.shape[0]
        return m & n, m | n, m ^ n, m << n, (m << 4) >> n, 6 & m, m | 1, x + (m & n)

    @jit
    def shifted(x, y):
        return x.shape[0] << (y.shape[0] - 3)

    @jit
    def of_floats(x, y):
        n = x.shape[0]
        return 7.5 // n, 7.5 % n, divmod(7.5, n), n // 2.5, n % 2.5, divmod(n, 2.5), True % n

    calls = [(3, 2), (5, 4), (5, 4), (1, 3), (6, 2)]
    inputs = [(tj.ones(m), tj.ones(n)) for m, n in calls]
    return [[tried(f, x, y) for x, y in inputs] for f in (two, shifted, of_floats)]


PROGRAMS = programs_in(globals())
