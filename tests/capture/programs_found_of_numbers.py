"""Programs in which numbers that stood for others during a recording were left behind."""

from __future__ import annotations

import functools
import operator

import tracejit as tj
from tests.capture.program_inputs import tried
from tests.capture.program_list import programs_in


class Box:
    """Anything."""

    def __init__(self, **held):
        self.__dict__.update(held)


def plainly(*numbers):
    """Their types, which `isinstance` would not tell, and values."""
    return [(type(n) in (int, float), n) for n in numbers]


def owner_that_is_elsewhere_after_the_call(jit):
    box = Box(n=1.0, items=[1.0], inner=Box(n=1.0))
    kept = box, box.items, box.inner

    @jit
    def f(x):
        nonlocal box
        box.n += 1
        box.items[0] += 1
        box.inner.n += 1
        y = x * box.n * box.items[0] * box.inner.n
        box.items, box.inner = [5.0], None
        box = None
        return y

    out = []
    for _ in range(3):
        box = kept[0]
        box.items, box.inner = kept[1:]
        out += [f(tj.ones(2)), *plainly(kept[0].n, kept[1][0], kept[2].n)]
    return out


def numbers_in_exceptions(jit):
    class Wrong(Exception):
        def __init__(self, n):
            super().__init__(n, [n])
            self.n = n

    box = Box(n=1.0)

    @jit
    def f(x, k):
        box.n += k
        try:
            raise Wrong(box.n)
        except Wrong as error:
            raise ValueError(x.shape[0], k) from error

    out = []
    for k in range(3):
        error = tried(f, tj.ones(2 + k), k + 0.5)
        cause = error.__cause__
        out += plainly(*error.args, cause.n, cause.args[0], cause.args[1][0], box.n)
    return out


def numbers_of_suspended_functions(jit):
    @jit
    def f(x, k):
        for i in range(2):
            yield x * k, k, i

    out = []
    for k in range(3):
        for y, *numbers in f(tj.ones(2), k + 0.5):
            out += [y, *plainly(*numbers)]
    return out


def numbers_in_defaults_and_partials(jit):
    kept = []

    @jit
    def f(x, k):
        def inner(a=k, *, b=k):
            return a, b, k

        kept.extend([inner, functools.partial(max, k)])
        return x * k

    out = []
    for k in (1.0, 2.0, 3.0):
        out.append(f(tj.ones(2), k))
        out += plainly(*kept[-2](), *kept[-1].args)
    return out


def numbers_in_containers_of_their_own_mind(jit):
    class Pair(tuple):
        def __new__(cls, a, b):
            return super().__new__(cls, (a, b))

    class Log(list):
        def __setitem__(self, key, value):
            raise TypeError("it only grows")

    box = Box(n=1.0, pair=None, log=Log(), m=1.0)

    @jit
    def f(x):
        box.n += 1
        box.pair = Pair(box.n, box.n * 2)
        box.log.append(box.n)
        box.m += 1
        return x * box.n

    out = []
    for _ in range(3):
        out += [f(tj.ones(2)), *plainly(box.n, *box.pair, *box.log, box.m)]
    return out


class Counted:
    __slots__ = ("held", "n")

    def __init__(self, n):
        self.n, self.held = n, [n * 2]


def sizes_in_objects_that_the_call_makes(jit):
    boxes = []

    @jit
    def f(x, box=None):
        boxes.append(Counted(x.shape[0]))
        if box is None:
            return x * 2, 0
        box.n += x.shape[0]
        return x.new_zeros(box.held[0]), box.n + 1

    out, box = [], None
    for n in (3, 2, 2, 5, 5):
        out += [f(tj.ones(n), box), [b.n for b in boxes], type(boxes[-1].n) is int]
        box = boxes[-1]
    return out


def product_of_sizes_that_is_a_number(jit):
    w = (tj.arange(20.0).view(4, 5) / 20).requires_grad_()

    @jit
    def step(x, mask):
        rows = x @ w
        known = tj.ones(6 if x.shape[1] == 6 else 4)
        rows.masked_fill_(~mask.flatten(1)[:, :, None], -3e38)
        loss = (rows + known[None, :, None]).softmax(1).square().sum()
        loss.backward()
        return loss

    out = []
    for b, h, k in ((3, 2, 3), (2, 3, 2), (2, 2, 2), (1, 1, 6)):
        w.grad, count = None, b * h * k
        mask = (tj.arange(count) % 4 > 0).view(b, h, k)
        out += [step(tj.linspace(-1, 1, count * 4).view(b, h * k, 4), mask), w.grad]
    return out


def moved_by_what_a_tensor_says(jit):
    w = (tj.arange(12.0).view(3, 4) / 12).requires_grad_()

    @jit
    def step(x):
        rows = x @ w
        best = rows.mean(0).topk(2)[1]
        for i in range(2):
            rows = tj.roll(rows, -int(best[i]), -1) + rows.tril(int(best[0])) * best[i]
        loss = rows.square().sum()
        loss.backward()
        return loss, rows.detach().roll((int(best[1]), 1), (1, 0))

    out = []
    for k in range(3):
        w.grad = None
        out += [step(tj.arange(6.0).view(2, 3).sin().roll(k, 1)), w.grad]
    return out


def numbers_in_lists_that_are_keys(jit):
    def of_an_argument(x, n):
        return x[[0, n]], x[[n]].sum()

    def of_sizes(x, n):
        backwards = list(range(x.shape[0]))[::-1]
        return x[backwards], x[[x.shape[0] - 1, -1]], x[:, [1, 0]], x[[]]

    def written(x, n):
        x[[0, n]] += 1
        x[:, [1, 0]] = x * 2
        return x[range(2)]

    def in_a_branch(x, n):
        y = x[[0, 1]] if x.sum() > 20 else x[:2] * 1
        for k in range(20):
            y = y + y[[1, 0]] * 0.1 + x[[k % 2, n]]
        return y

    out = []
    for body in (of_an_argument, of_sizes, written, in_a_branch):
        f = jit(body)
        for rows, n in ((3, 0), (3, 1), (4, 2), (5, -1), (3, 7), (3, 1)):
            x = tj.arange(2.0 * rows).view(rows, 2)
            out += [tried(f, x, n), x]
    return out


def texts_of_numbers_that_decide(jit):
    def keys(x, n):
        return {f"layer{n}": x * 2, f"of {x.shape[0]}": n}

    def numbers_again(x, n):
        return int(str(n)), x * float(f"{n}.5"), x[: int(f"{n:d}")], int(f"{x.shape[0]}{n}")

    def compared(x, n):
        return str(n) == "2", x + 1 if f"{x.shape[0]}" in ("3",) else x - 1, str(n) < "2"

    def taken_apart(x, n):
        return [*f"{n}{n}"], str(n * 0.5)[0], len(str(n) * 2), str((n, x.shape)).count("3")

    def attribute(x, n):
        return getattr(x, "sum" if str(n).isdigit() else "mean")(), hash(str(n)) == hash("3")

    out = []
    for body in (keys, numbers_again, compared, taken_apart, attribute):
        f = jit(body)
        for rows, n in ((3, 1), (3, 2), (4, 2), (3, 3), (3, -1), (3, 2)):
            out.append(tried(f, tj.ones(rows), n))
    return out


def numbers_of_tensors_that_are_known_by_now(jit):
    """What asked for them first ended the segment."""
    def places(x, t):
        n = int(t)
        x[:n, 0] = n
        return x, n // n, 7 % n

    def masked(x, t):
        n = int(t)
        x[x > n] = n
        return x.fill_(n) if n > 2 else x

    def counted(x, t):
        n = int(t)
        return tj.arange(1, n * 2, n), tj.full((2,), n), tj.full((n,), n, dtype=tj.float64)

    def floating(x, t):
        n = float(t)
        return x[: int(n)].masked_fill(x[: int(n)] > 1, n), tj.full((2,), n), x.clamp(max=n)

    out = []
    for body in (places, masked, counted, floating):
        f = jit(body)
        for n in (2, 3, 1):
            x = tj.arange(6.0).view(3, 2)
            out += [tried(f, x, tj.tensor(n)), x]
    return out


def ints_that_no_word_holds(jit):
    """Functions that make a tensor of an int, or write it: each refuses it in its own words."""
    def made(x, n):
        return [tried(f, n) for f in (
            tj.tensor, tj.as_tensor, x.new_tensor, lambda n: tj.full((2,), n), lambda n: x.fill_(n),
            lambda n: tj.tensor([n, 1], dtype=tj.float64), lambda n: tj.tensor([n], dtype=tj.int32),
            lambda n: tj.full_like(x > 0, n), lambda n: tj.tensor([n, 1.5]),
            lambda n: x.bfloat16().fill_(n))]

    def written(x, n):
        i, m = tj.tensor([0]), x > 1
        return [tried(f) for f in (
            lambda: x.masked_fill(m, n), lambda: (x > 0).masked_fill(m, n),
            lambda: x.scatter(0, i, n), lambda: x.int().scatter(0, i, n),
            lambda: x.index_fill(0, i, n), lambda: x.__setitem__(0, n),
            lambda: x.__setitem__(m, n), lambda: m.__setitem__(0, n))]

    def padded(x, n):
        pad = tj.nn.functional.pad
        kinds = (x, x.int(), x.byte(), x > 0, x.float())
        return [tried(pad, y, (1, 1), "constant", n) for y in kinds]

    out = []
    for body in (made, written, padded):
        f = jit(body)
        for n in (5, -6, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 7):
            if body is not padded or n not in (2**63 - 1, 2**63):  # left to chance in PyTorch
                x = tj.tensor([7, 0, 1, 2])
                out += [f(x, n), x]
    return out


def bytes_divided_by_what_wraps(jit):
    def divided(x, n):
        return [x // n, x % n, x.div(n, rounding_mode="trunc"), x.fmod(n)]

    held = {"n": 3}
    f, g, h = jit(divided), jit(lambda x: divided(x, -1)), jit(lambda x: divided(x, held["n"]))
    out = []
    for n in (3, -1, 2, -3, -1):
        held["n"] = n
        for dtype in (tj.uint8, tj.int8):
            x = tj.tensor([7, 255, 1, 100]).to(dtype)
            out += [f(x, n), g(x), h(x)]
    return out


def numbers_compared_with_what_has_no_order(jit):
    def compared(x, n):
        pairs = [(a, b) for a in (1j, "a", None, [1]) for b in (n, x.shape[0], n * 0.5)]
        pairs += [(b, a) for a, b in pairs]
        return [tried(order, *pair) for order in (operator.lt, operator.ge, operator.eq)
                for pair in pairs]

    f = jit(compared)
    return [f(tj.ones(n + 1), n) for n in (1, 2, 3)]


def divmods_that_raise(jit):
    def divided(x, n):
        return [tried(divmod, *pair) for a in (0, 0.0, 3, 1j, x[0].item(), x)
                for pair in ((a, n), (n, a), (a, n * 0.5), (n * 0.5, a))]

    f = jit(divided)
    return [f(tj.tensor([v]), n) for v, n in ((1.5, 2), (0.0, 3), (2.0, 0), (2.0, 5))]


PROGRAMS = programs_in(globals())
