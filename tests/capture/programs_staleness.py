"""Programs on what may change between calls: globals, closures, attributes, flags, modes, shapes,
randomness, effects."""

from __future__ import annotations

import collections
import math

import numpy as np

import tracejit as tj

SCALE = 2.0
TABLE = {"a": 1.0, "b": [1, 2]}
WEIGHT = tj.ones(2)


def global_number(jit):
    global SCALE
    f = jit(lambda x: x * SCALE)
    out = []
    for value in (2.0, 3.0, -0.0, 0.0, float("inf"), 2, True):
        SCALE = value
        out.append(f(tj.tensor([1.0, -1.0])))
    SCALE = 2.0
    return out


def global_container(jit):
    @jit
    def f(x):
        return x * TABLE["a"] + TABLE["b"][1]

    x = tj.ones(2)
    out = [f(x)]
    TABLE["a"] = 5.0
    out.append(f(x))
    TABLE["b"][1] = 7
    out.append(f(x))
    TABLE["b"] = [0, 0]
    out.append(f(x))
    TABLE.update(a=1.0, b=[1, 2])
    return out


def global_tensor_mutated_and_rebound(jit):
    global WEIGHT
    f = jit(lambda x: x * WEIGHT)
    out = [f(tj.ones(2))]
    WEIGHT.add_(1)
    out.append(f(tj.ones(2)))
    WEIGHT = tj.full((2,), 9.0)
    out.append(f(tj.ones(2)))
    WEIGHT = tj.ones(2)
    return out


def closure_rebound(jit):
    k, w = 1.0, tj.ones(2)

    @jit
    def f(x):
        return x * k + w

    out = [f(tj.ones(2))]
    k = 4.0
    out.append(f(tj.ones(2)))
    w = tj.zeros(2)
    out.append(f(tj.ones(2)))
    w.add_(3)
    out.append(f(tj.ones(2)))
    return out


def nonlocal_counter(jit):
    count = 0

    @jit
    def f(x):
        nonlocal count
        count += 1
        return x * count

    return [f(tj.ones(1)), f(tj.ones(1)), f(tj.ones(1)), count]


def helper_function_replaced(jit):
    class Box:
        @staticmethod
        def act(x):
            return x + 1

    f = jit(lambda x: Box.act(x))
    out = [f(tj.ones(1))]
    Box.act = staticmethod(lambda x: x * 100)
    out.append(f(tj.ones(1)))
    return out


def nested_helper_reads_state(jit):
    settings = {"scale": 2.0}

    def inner(x):
        return x * settings["scale"]

    def outer(x):
        return inner(x) + 1

    f = jit(lambda x: outer(x))
    out = [f(tj.ones(1))]
    settings["scale"] = -2.0
    out.append(f(tj.ones(1)))
    return out


def object_attribute(jit):
    class Config:
        gain = 2.0

        def __init__(self):
            self.bias = 1.0
            self.name = "plain"

    config = Config()

    @jit
    def f(x):
        y = x * config.gain + config.bias
        return -y if config.name == "negative" else y

    out = [f(tj.ones(1))]
    config.bias = 3.0
    out.append(f(tj.ones(1)))
    config.name = "negative"
    out.append(f(tj.ones(1)))
    Config.gain = 10.0
    out.append(f(tj.ones(1)))
    config.gain = 1.0
    out.append(f(tj.ones(1)))
    return out


def object_as_argument(jit):
    Options = collections.namedtuple("Options", "scale shift")
    f = jit(lambda x, o: x * o.scale + o.shift)
    return [
        f(tj.ones(2), Options(s, b))
        for s, b in ((1.0, 2.0), (3.0, 2.0), (3.0, tj.ones(2)), (1.0, 2.0))
    ]


def dynamic_attribute_name(jit):
    class Box:
        def __init__(self):
            self.first, self.second = 1.0, 2.0

    box, which = Box(), ["first"]
    f = jit(lambda x: x * getattr(box, which[0]))
    out = [f(tj.ones(1))]
    box.first = 5.0
    out.append(f(tj.ones(1)))
    which[0] = "second"
    out.append(f(tj.ones(1)))
    return out


def property_read(jit):
    class Box:
        def __init__(self):
            self._k = 2.0

        @property
        def k(self):
            return self._k * 10

    box = Box()
    f = jit(lambda x: x * box.k)
    out = [f(tj.ones(1))]
    box._k = 3.0
    out.append(f(tj.ones(1)))
    return out


def has_attribute(jit):
    class Box:
        pass

    box = Box()
    f = jit(lambda x: x * 2 if hasattr(box, "extra") else x)
    out = [f(tj.ones(1))]
    box.extra = 1
    out.append(f(tj.ones(1)))
    del box.extra
    out.append(f(tj.ones(1)))
    return out


def float_argument(jit):
    f = jit(lambda x, k: x * k + k * 2)
    return [f(tj.ones(2), k) for k in (1.0, 2.5, -0.0, float("nan"), float("inf"), 3)]


def float_argument_branched_on(jit):
    @jit
    def f(x, loss):
        return x * 2 if loss < 5.0 else x * 3

    return [f(tj.ones(1), k) for k in (1.0, 9.0, 4.999, 5.0, 1.0)]


def int_and_bool_arguments(jit):
    @jit
    def f(x, n, flag=False, *, mode="sum"):
        for _ in range(n):
            x = x + 1
        x = x if flag else -x
        return x.sum() if mode == "sum" else x.mean()

    x = tj.arange(3.0)
    return [f(x, 1), f(x, 2), f(x, 2, True), f(x, 2, flag=True, mode="mean"), f(n=0, x=x), f(x, 1)]


def containers_as_arguments(jit):
    @jit
    def f(xs, options):
        total = xs[0] * options["k"]
        for x in xs[1:]:
            total = total + x
        return {"total": total, "n": len(xs)}

    a, b = tj.ones(2), tj.arange(2.0)
    return [
        f([a, b], {"k": 1.0}),
        f([a, b, b], {"k": 1.0}),
        f([b, a], {"k": 3.0}),
        f((a,), {"k": 1.0}),
    ]


def training_flag(jit):
    module = tj.nn.Sequential(tj.nn.Linear(3, 3), tj.nn.Dropout(0.5))
    f = jit(lambda x: module(x))
    x = tj.ones(2, 3)
    tj.manual_seed(3)
    with tj.no_grad():
        out = [f(x)]
        module.eval()
        out.append(f(x))
        module.train()
        out.append(f(x))
        module[1].p = 0.0
        out.append(f(x))
    return out


def layer_replaced(jit):
    module = tj.nn.Sequential(tj.nn.Linear(2, 2), tj.nn.ReLU())
    with tj.no_grad():
        module[0].weight.fill_(0.5)
        module[0].bias.fill_(-1.0)
    f = jit(lambda x: module(x).detach())
    x = tj.ones(1, 2) * -3
    out = [f(x)]
    module[1] = tj.nn.Tanh()
    out.append(f(x))
    module[0].weight = tj.nn.Parameter(tj.ones(2, 2))
    out.append(f(x))
    module[0].weight.data = tj.zeros(2, 2)
    out.append(f(x))
    module.append(tj.nn.Tanh())
    out.append(f(x))
    return out


def hook_added(jit):
    module = tj.nn.Linear(2, 2, bias=False)
    with tj.no_grad():
        module.weight.fill_(1.0)
    f = jit(lambda x: module(x).detach())
    x = tj.ones(1, 2)
    out = [f(x)]
    handle = module.register_forward_hook(lambda m, i, o: o * 10)
    out.append(f(x))
    handle.remove()
    out.append(f(x))
    return out


def state_dict_loaded(jit):
    module = tj.nn.Linear(2, 1)
    f = jit(lambda x: module(x).detach())
    x = tj.ones(1, 2)
    f(x)
    module.load_state_dict({"weight": tj.ones(1, 2), "bias": tj.zeros(1)})
    return [f(x)]


def requires_grad_switched(jit):
    w = tj.ones(2, requires_grad=True)
    f = jit(lambda x: x * w)
    out = [f(tj.ones(2)).requires_grad]
    w.requires_grad_(False)
    out.append(f(tj.ones(2)).requires_grad)
    w.requires_grad_(True)
    out.append(f(tj.ones(2)).requires_grad)
    return out


def grad_mode_switched(jit):
    w = tj.ones(2, requires_grad=True)
    f = jit(lambda x: x * w)
    out = [f(tj.ones(2)).requires_grad]
    with tj.no_grad():
        out.append(f(tj.ones(2)).requires_grad)
    out.append(f(tj.ones(2)).requires_grad)
    return out


def default_dtype_switched(jit):
    f = jit(lambda n: tj.zeros(2) + 0.5)
    out = [f(1)]
    tj.set_default_dtype(tj.float64)
    try:
        out.append(f(1))
    finally:
        tj.set_default_dtype(tj.float32)
    return [*out, f(1)]


def dtype_and_rank(jit):
    f = jit(lambda x: x * 2 + 1)
    return [
        f(tj.ones(2)),
        f(tj.ones(2, dtype=tj.float64)),
        f(tj.ones(2, dtype=tj.int64)),
        f(tj.ones(2, 2)),
        f(tj.tensor(3.0)),
        f(tj.tensor(True)),
    ]


def many_sizes(jit):
    f = jit(lambda x, b: (x + b).sum(0) / x.shape[0])
    return [f(tj.ones(n, 3), tj.arange(3.0)) for n in (5, 1, 2, 7, 64, 3)]


def zero_size(jit):
    f = jit(lambda x: (x * 2).sum(1))
    return [f(tj.ones(3, 2)), f(tj.ones(0, 2)), f(tj.ones(3, 0)), f(tj.ones(1, 1))]


def broadcast_appears(jit):
    f = jit(lambda a, b: a + b)
    return [
        f(tj.ones(4), tj.ones(4)),
        f(tj.ones(4), tj.ones(1)),
        f(tj.ones(1), tj.ones(4)),
        f(tj.ones(1), tj.ones(1)),
    ]


def size_branched_on(jit):
    f = jit(lambda x: x * 2 if x.shape[0] > 3 else x * 3)
    return [f(tj.ones(n)) for n in (2, 5, 3, 4, 1, 0)]


def size_returned(jit):
    f = jit(lambda x: (x.shape[0] * 2, x.numel(), x.size(), x.view(-1).shape))
    return [f(tj.ones(2, 3)), f(tj.ones(4, 5))]


def size_in_python_loop(jit):
    @jit
    def f(x):
        total = x[0] * 0
        for k in range(x.shape[0]):
            total = total + x[k] * k
        return total

    return [f(tj.ones(n)) for n in (2, 5, 1)]


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


def seeded_inside(jit):
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
        out.append(str(error))
    return [*out, x, f(x, 1)]


def math_functions(jit):
    f = jit(lambda x, k: x * math.sqrt(k) + math.pi)
    return [f(tj.ones(1), 4.0), f(tj.ones(1), 9.0)]


def tensor_made_inside(jit):
    f = jit(lambda x, k: x + tj.tensor([1.0, k]) + tj.arange(2) + tj.full((2,), k))
    return [f(tj.zeros(2), 3.0), f(tj.zeros(2), 4.0)]


def method_of_two_instances(jit):
    class Scaler:
        def __init__(self, k):
            self.k = tj.tensor(k)

        @jit
        def __call__(self, x):
            return x * self.k

    a, b = Scaler(2.0), Scaler(3.0)
    out = [a(tj.ones(1)), b(tj.ones(1))]
    a.k = tj.tensor(7.0)
    return [*out, a(tj.ones(1)), b(tj.ones(1))]


def captured_inside_captured(jit):
    inner = jit(lambda x: x * 2)
    outer = jit(lambda x: inner(x) + 1)
    return [outer(tj.ones(1)), inner(tj.ones(1)), outer(tj.zeros(3))]


def attribute_of_a_tensor(jit):
    f = jit(lambda x: x * x.factor)
    x = tj.ones(2)
    x.factor = 3.0
    out = [f(x)]
    x.factor = 4.0
    return [*out, f(x)]


def lambda_made_anew(jit):
    f = jit(lambda x, g: g(x))
    out = []
    for k in (1.0, 2.0, 3.0):
        out.append(f(tj.ones(1), lambda x: x * k))  # noqa: B023
    out.append(f(tj.ones(1), lambda x: x - 7))
    return out


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


def forward_replaced(jit):
    module = tj.nn.ReLU()
    f = jit(lambda x: module(x))
    out = [f(tj.ones(1))]
    module.forward = lambda x: x * 100
    out.append(f(tj.ones(1)))
    del module.forward
    return [*out, f(tj.ones(1))]


def grad_mode_left_changed(jit):
    w = tj.ones(1, requires_grad=True)

    @jit
    def f(x, flag):
        tj.set_grad_enabled(flag)
        return x * w

    out = []
    for flag in (False, True, False, True):
        out.append(f(tj.ones(1), flag).requires_grad)
        out.append(tj.is_grad_enabled())
    tj.set_grad_enabled(True)
    return out


def hook_added_to_a_parameter_of_a_step(jit):
    w = tj.ones(2, requires_grad=True)

    @jit
    def step(x):
        (x * w).sum().backward()

    out = []
    for k in range(4):
        w.grad = None
        handle = w.register_hook(lambda g: g * 10) if k == 2 else None
        step(tj.ones(2))
        out.append(w.grad.clone())
        if handle is not None:
            handle.remove()
    return out


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


def default_argument(jit):
    @jit
    def f(x, ks=[1.0]):  # noqa: B006
        ks.append(2.0)
        return x * sum(ks)

    return [f(tj.ones(1)), f(tj.ones(1)), f(tj.ones(1), [5.0])]


def instance_method_patched(jit):
    class Box:
        def act(self, x):
            return x + 1

    box = Box()
    f = jit(lambda x: box.act(x))
    out = [f(tj.ones(1))]
    box.act = lambda x: x * 50
    out.append(f(tj.ones(1)))
    del box.act
    Box.act = lambda self, x: x - 1
    return [*out, f(tj.ones(1))]


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


def size_kept_over_a_break(jit):
    @jit
    def f(x):
        n = x.shape[0]
        y = tj.cat([x, x])
        if bool(y.sum() > 0):
            y = y * 2
        m = y.shape[0]
        return y.view(n, 2), m - n, m == n, n == x.shape[0], m // n, n < m, m % n, m * n

    return [f(tj.ones(n)) for n in (3, 4, 1)]


PROGRAMS = [
    f for f in list(globals().values()) if callable(f) and getattr(f, "__module__", "") == __name__
]
