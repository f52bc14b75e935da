"""Ints that say how large something is, or where, and change between calls: one program, and what
the plain function shows (C2, C3)."""

from __future__ import annotations

import pytest

import tracejit as tj
from tests.capture.number_outcomes import outcome, same

F = tj.nn.functional
ROWS = [(8, 5), (8, 4), (6, 3), (9, 8), (4, 1), (12, 7)]
LIMITS = [(8, 0), (6, 6), (1, 1), (1, 0), (0, 0), (3, 5), (7, -2), (7, -9), (8, 2**31), (8, 2**63)]


def rows(count):
    return tj.arange(count * 6.0).reshape(count, 6) * 0.1 - 1


def written(x, n):
    x[n] = 7.0
    x[:, n:] += 1
    x[:n] = x[n]
    return x


def differentiated(x, n):
    w = x.clone().requires_grad_()
    (w[:n].exp().sum() + w[n:].pow(2).sum()).backward()
    return w.grad


def in_place(x, n):
    y = x[:n]
    y.add_(1)
    y.t()[: n - 1].mul_(2)
    return x, y


def asked(x, n):
    if x.shape[0] == n:
        return x + 1
    return x[n:] if x.shape[0] > n else x * (n * x.shape[0])


def decided(x, n):
    return x[:n].sum() if x.sum() > 0 else x[n:].sum()


ONE_PROGRAM = {
    "halves": lambda x, n: (x[:n] * 2, x[n:].sum(), x.narrow(0, n - 1, 2)),
    "places": lambda x, n: (x[n - 1], x[-n], x.select(0, n - 1) + n),
    "made": lambda x, n: (tj.zeros(n), tj.ones(n, n + 1), tj.full((n, 2), 3.0), x.new_ones(2 * n)),
    "ranges": lambda x, n: (tj.arange(n), tj.arange(1, n + 1), tj.arange(0, n, 2)),
    "views": lambda x, n: (tj.ones(n * 4).view(n, 4), x.expand(n, *x.shape).sum(0)),
    "padded": lambda x, n: (F.pad(x, (0, n)), F.pad(x, (n, 0, 1, n))),
    "joined": lambda x, n: (tj.cat([x[:n], x[n:]]), tj.stack([x[n - 1], x[n // 2]])),
    "sizes": lambda x, n: (x[:n].shape, x[:n].numel(), n + x.shape[0], x * (n * x.shape[0])),
    "differentiated": differentiated,
}
OTHERS = {"written": written, "in_place": in_place, "asked": asked, "decided": decided,
          "pieces": lambda x, n: (x.split(n)[0], x[::2][:n], x[n:n], x[:n:2], x[n - 1 : n + 1]),
          "largest": lambda x, n: x.topk(n, 0)[0]}  # fmt: skip


def compared(function, values, mode="graph"):
    captured = tj.script(lambda x, n: (function(x, n), x), mode=mode, numerics="eager")
    for count, n in values:
        x = rows(count)
        assert outcome(captured, x, n) == outcome(lambda x, n: (function(x, n), x), rows(count), n)
    return captured.report()


@pytest.mark.parametrize("name", ONE_PROGRAM)
def test_one_program_serves_any_int(name):
    report = compared(ONE_PROGRAM[name], ROWS)
    assert report.compiles == 1, report


@pytest.mark.parametrize("name", [*ONE_PROGRAM, *OTHERS])
@pytest.mark.parametrize("mode", ["graph", pytest.param("compiled", marks=pytest.mark.full)])
def test_ints_at_their_limits(name, mode):
    f = {**ONE_PROGRAM, **OTHERS}[name]
    huge = [] if name in ("made", "ranges", "padded", "views") else LIMITS[-2:]
    values = [*ROWS, *LIMITS[:-2], *huge, *ROWS]
    compared(f, values, mode)


def test_an_attribute_that_counts():
    class Cache:
        def __init__(self):
            self.rows, self.end = tj.zeros(64, 3), 0

        def __call__(self, x):
            self.rows[self.end] = x
            self.end += 1
            return self.rows[: self.end].sum(0)

    plain, captured = Cache(), Cache()
    step = tj.script(captured.__call__)
    for k in range(50):
        x = tj.full((3,), float(k))
        assert plain(x).tolist() == step(x).tolist()
    assert captured.end == 50 and captured.rows.tolist() == plain.rows.tolist()
    assert step.report().compiles <= 2, step.report()


def test_views_of_what_is_empty():
    """A dimension that is to be inferred beside one of no elements."""
    same(lambda count: tj.ones(count, 4).view(-1, count), [3, 0, 2])
    same(lambda x: x.view(x.shape[0], -1), [tj.ones(3, 4), tj.ones(0, 4), tj.ones(2, 4)])


def test_the_length_of_a_tensor():
    def f(x):
        total, count = x.sum() / len(x), 0
        for i in range(len(x)):
            total = total + x[i].sum() * i
        if len(x) > 100:
            count += 1
        return total, len(x), count, [0] * 2, x[len(x) // 2 :]

    report = same(f, [tj.ones(n, 2) for n in (3, 5, 1, 8)])
    assert report.compiles == 1, report
    same(lambda x: ([1] * len(x), {len(x): 1}, f"{len(x)} rows"), [tj.ones(n) for n in (3, 2, 0)])
    same(lambda x: len(x), [tj.ones(2), tj.tensor(1.0), tj.zeros(0, 3)])


def test_an_exact_program_for_each_int():
    report = same(lambda n: tj.ones(8)[:n], [3, 4], dynamic=False)
    assert report.compiles == 2


def test_shapes_of_truth_values():
    for function in (lambda: tj.zeros(True), lambda: tj.full((True, 2), 1.0)):
        with pytest.raises(TypeError, match="bool|integers"):
            function()
