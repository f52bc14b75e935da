"""Programs that read numbers out of tensors for metrics only: into lists, objects, dicts, results.

Values are such that every way of computing them gives the same bits. `only_metrics` is true of a
program whose captured function must have no break and be compiled once.
"""

from __future__ import annotations

import math

import tracejit as tj

LOSSES: list = []
HISTORY: dict = {"loss": [], "accuracy": []}
LAST = 0.0


def only_metrics(program):
    program.only_metrics = True
    return program


def numbers(count=5):
    return [tj.arange(4.0) * k - 2 for k in range(count)]


@only_metrics
def losses_in_a_global_list(jit):
    LOSSES.clear()

    @jit
    def f(x):
        loss = (x * x).sum()
        LOSSES.append(loss.item())
        return loss

    return f, [f(x) for x in numbers()], list(LOSSES), {type(v) for v in LOSSES}


@only_metrics
def losses_in_an_argument(jit):
    @jit
    def f(x, out):
        out.append((x * x).sum().item())
        out.append(x.sum().item())

    one, other = [1.5], []
    for k, x in enumerate(numbers()):
        f(x, one if k % 2 else other)
    return f, one, other


@only_metrics
def losses_in_a_closure_and_an_attribute(jit):
    class Log:
        def __init__(self):
            self.seen = []

    log, seen = Log(), ["start"]

    @jit
    def f(x):
        y = x + 1
        seen.append((y.sum().item(), "of", [y.max().item()]))
        log.seen.append({"min": y.min().item()})
        return y

    return f, [f(x) for x in numbers()], seen, log.seen


@only_metrics
def lists_in_a_dict(jit):
    HISTORY["loss"], HISTORY["accuracy"] = [], []

    @jit
    def f(x):
        HISTORY["loss"].append(x.sum().item())
        HISTORY["accuracy"].append((x > 0).sum().item())

    for x in numbers():
        f(x)
    return f, HISTORY


def a_list_that_is_read(jit):
    seen = []

    @jit
    def f(x):
        seen.append(x.sum().item())
        return x * len(seen)

    return f, [f(x) for x in numbers()], seen


def a_list_that_is_read_elsewhere_in_the_call(jit):
    seen = []

    def count(values):
        return len(values)

    @jit
    def f(x):
        seen.append(x.sum().item())
        return x + count(seen)

    return f, [f(x) for x in numbers()], seen


def a_list_under_two_names(jit):
    seen: list = []
    the_same = seen

    @jit
    def f(x):
        seen.append(x.sum().item())
        return x * len(the_same)

    return f, [f(x) for x in numbers()], seen


def a_list_that_is_rebound(jit):
    class Log:
        seen: list = []

    log = Log()
    log.seen = []

    @jit
    def f(x):
        log.seen.append(x.sum().item())

    kept = []
    for k, x in enumerate(numbers()):
        f(x)
        if k == 2:
            kept, log.seen = log.seen, [1, 2]
    return f, kept, log.seen


class AverageMeter:
    def __init__(self):
        self.val, self.sum, self.count, self.avg = 0.0, 0.0, 0, 0.0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n


@only_metrics
def a_running_average(jit):
    meter = AverageMeter()

    @jit
    def f(x):
        y = x * 2
        meter.update(y.sum().item(), 3)
        return y

    out = [(f(x), meter.val, meter.sum, meter.count) for x in numbers()]
    return f, out, type(meter.sum)


def a_running_average_that_divides(jit):
    meter = AverageMeter()

    @jit
    def f(x):
        meter.update(x.sum().item(), 4)
        meter.avg = meter.sum / meter.count
        return meter.avg

    return f, [f(x) for x in numbers()], vars(meter)


@only_metrics
def metrics_in_a_dict(jit):
    @jit
    def f(x):
        loss, hits = (x * x).sum(), (x > 0).sum()
        return {"loss": loss.item(), "hits": hits.item(), "n": x.shape[0],
                "rate": hits.item() / 4, "two": [loss.item(), (hits.item(), None)]}

    return f, [f(x) for x in numbers()]


def metrics_stored_in_a_dict(jit):
    found = {}

    @jit
    def f(x):
        found["loss"] = x.sum().item()
        found["twice"] = found["loss"] * 2

    out = []
    for x in numbers():
        f(x)
        out.append(dict(found))
    return f, out


@only_metrics
def a_global_that_is_rebound(jit):
    global LAST
    LAST = 0.0

    @jit
    def f(x):
        global LAST
        LAST = x.sum().item()

    out = []
    for x in numbers():
        f(x)
        out.append(LAST)
    return f, out


@only_metrics
def ints_and_halves(jit):
    @jit
    def f(x):
        whole, half, brain = x.to(tj.int32), x.to(tj.float16), x.to(tj.bfloat16)
        small = (x * 0 + 200).to(tj.uint8)
        return (whole.sum().item(), half.max().item(), brain.min().item(), small[0].item(),
                x.double().mean().item(), whole[1:2].item())

    return f, [f(x / 3) for x in numbers()]


def a_bool(jit):
    @jit
    def f(x):
        return (x > 100).any().item() is False

    return f, [f(x) for x in numbers()]


@only_metrics
def not_a_number(jit):
    @jit
    def f(x):
        return (x / 0).sum().item(), (x * math.inf).max().item(), (-x.abs() / 0)[1].item(), \
            x[1].item() * 0, -x[0].item()

    return f, [f(x) for x in numbers()]


@only_metrics
def before_and_after_a_write(jit):
    @jit
    def f(x):
        first = x[1].item()
        x.mul_(2)
        second = x[1].item()
        x.add_(first)
        x[1] = 7
        return first, second, x[1].item(), second - first, x

    x = tj.arange(4.0)
    return f, [f(x) for _ in range(4)], x


@only_metrics
def arithmetic_of_numbers(jit):
    @jit
    def f(x):
        a, n = (x[1].double() * 0.3).item(), x.sum().to(tj.int64).item()
        total = 0
        for k in range(4):
            total += x[k].item() / 3
        return (a + n, a - 0.1, 3 * a * a, a / 3, a // 0.3, a % 0.7, -a, abs(a), +a, round(a, 3),
                n + 1, n * n * n, n // 3, n % 3, -n, n / 3, n - a, total, sum([a, a, n]), 2 - a,
                n ^ 5, ~n, n & True, True + a, a * x.shape[0])

    return f, [f(x) for x in numbers()]


@only_metrics
def ints_longer_than_a_word(jit):
    @jit
    def f(x):
        n = x.max().item()
        return n * n * n * n + 1, n * 10**40 - 1

    return f, [f(tj.tensor([3, k * 2**60 - 5])) for k in range(-3, 4)]


@only_metrics
def a_number_used_with_a_tensor(jit):
    @jit
    def f(x):
        v, n = x.sum().item(), x.sum().to(tj.int64).item()
        return x * v + 1, x.to(tj.int64) + n, x.to(tj.int64) + v, v - x, (v * 2 + 1) * x, \
            x.half() * v, x.to(tj.int64) * (n / 4)

    return f, [f(x) for x in numbers()]


def a_number_that_decides(jit):
    @jit
    def f(x):
        v = x.sum().item()
        if v > 0:
            return x * v
        return v, min(v, -3.0), int(v), math.floor(v), float(v), bool(v), v == 3

    return f, [f(x) for x in numbers()]


def a_number_divides(jit):
    @jit
    def f(x, way):
        v = x.sum().item()
        try:
            return 1 / v if way == 0 else 5 // v if way == 1 else (v**-1, 2**v)
        except ZeroDivisionError:
            return str(v)

    return f, [f(x, way) for way in range(3) for x in (tj.zeros(4), *numbers(2))]


def a_number_as_an_index_or_a_key(jit):
    @jit
    def f(x):
        n = x.max().to(tj.int64).item()
        table = {0: "none", 1: "one", 4: "four", n: "n"}
        return table.get(n), list(range(n % 3)), x[n % 4], [1, 2, 3][n % 3], "ab" * (n % 3), {n}

    return f, [f(x.abs()) for x in numbers()]


@only_metrics
def while_gradients_are_recorded(jit):
    w = tj.ones(4, requires_grad=True)
    seen = []

    @jit
    def f(x):
        loss = (w * x).sum()
        seen.append(loss.item())
        with tj.no_grad():
            seen.append((loss * 2).item())
        return loss

    for x in numbers():
        f(x).backward()
        seen.append(w.grad.sum().item())
    return f, seen, w.grad


@only_metrics
def a_training_step(jit):
    w = tj.ones(4, requires_grad=True)
    opt = tj.optim.SGD([w], lr=0.25)
    losses = []

    @jit
    def step(x):
        loss = (w * x).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        losses.append(w.detach().max().item())

    for x in numbers(8):
        step(x)
    return step, losses, w


@only_metrics
def captured_in_captured(jit):
    seen = []

    @jit
    def inner(x):
        v = x.sum().item()
        seen.append(v)
        return v * 2

    @jit
    def f(x):
        return inner(x) + inner(x + 1), x

    return f, [f(x) for x in numbers()], seen


@only_metrics
def many_sizes(jit):
    seen = []

    @jit
    def f(x):
        v = x.sum().item()
        seen.append(v)
        return v / 2

    return f, [f(tj.arange(float(n))) for n in (3, 0, 1, 2, 100, 3)], seen


def a_failure_after_a_read(jit):
    seen = []

    @jit
    def f(x, k):
        seen.append(x.sum().item())
        if k == 2:
            raise ValueError("two")
        return x[k].item()

    out = []
    for k, x in enumerate(numbers(6)):
        try:
            out.append(f(x, k))
        except (ValueError, IndexError) as error:
            out.append(type(error).__name__)
    return f, out, seen


def a_library_sees_plain_numbers(jit):
    import json
    import statistics

    seen = []

    @jit
    def f(x):
        v = x.sum().item()
        seen.append({"v": v})
        return json.dumps({"a": [v]}), json.dumps(seen), statistics.mean([v, 2.0]), json.dumps(v)

    return f, [f(x) for x in numbers()], seen


PROGRAMS = [
    program for program in list(globals().values())
    if callable(program) and getattr(program, "__module__", "") == __name__
    and getattr(program, "__code__", None) and program.__code__.co_varnames[:1] == ("jit",)
]  # fmt: skip
