"""Gradients added in place have the bits of sums one by one, and nobody sees the difference."""

import sys

import numpy as np
import pytest

import tracejit as tj
from tests.runtime.leaks import assert_level
from tracejit.core.eager import gathered
from tracejit.core.eager.engine import Task

RNG = np.random.default_rng(3)
SPECIAL = np.array([-0.0, 0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-45, 3.4e38])


def values(*shape, dtype="f4", zeros=False):
    found = RNG.standard_normal(shape)
    if zeros:
        found[...] = -0.0
    chosen = RNG.random(shape) < (0.0 if zeros else 0.4)
    found[chosen] = RNG.choice(SPECIAL, int(chosen.sum()))
    with np.errstate(all="ignore"):
        return tj.tensor(found.astype(dtype))


# Each calls `give(part)` for parts of `x`, of shape (6, 4): what it gets is the part's gradient.
READS = {
    "rows": lambda x, give: [give(row) for row in x],
    "one row": lambda x, give: give(x[2]),
    "columns": lambda x, give: [give(c) for c in x.unbind(1)],
    "the same row": lambda x, give: [give(x[1]) for _ in range(4)],
    "overlapping": lambda x, give: [give(x[k:k + 3]) for k in range(4)],
    "steps": lambda x, give: [give(x[::2]), give(x[1::3]), give(x[:, 1::2])],
    "rows and the whole": lambda x, give: [give(x[0]), give(x), give(x[1]), give(x[2])],
    "the whole often": lambda x, give: [give(x) for _ in range(4)] + [give(x[3]), give(x[4])],
    "the whole, then a row": lambda x, give: [give(x), give(x[0])],
    "a row, then the whole": lambda x, give: [give(x[3]), give(x), give(x)],
    "again": lambda x, give: [give(x), give(x[0]), give(x), give(x[1]), give(x[2])],
    "pieces": lambda x, give: [give(part) for part in x.split(2) + x.chunk(2, 1)],
    "nothing of it": lambda x, give: [give(x[3:3]), give(x[0])],
}


class Given(tj.autograd.Function):
    """Any gradient, whatever the values."""

    @staticmethod
    def forward(ctx, x, grad):
        ctx.save_for_backward(grad)
        return x.sum() * 0

    @staticmethod
    def backward(ctx, _):
        return ctx.saved_tensors[0].clone(), None


def gradient(read, leaf, dtype, around=lambda x: x, zeros=False):
    """The gradient of a tensor read so. `zeros`: all that arrives is -0.0."""
    global RNG
    RNG = np.random.default_rng(3)
    w = tj.ones(6, 4, dtype={"f4": tj.float32, "f8": tj.float64}[dtype], requires_grad=True)
    x = around(w if leaf else w.view(6, 4))
    results = []
    read(x, lambda p: results.append(Given.apply(p, values(*p.shape, dtype=dtype, zeros=zeros))))
    sum(results).backward()
    return w.grad


@pytest.fixture
def added(monkeypatch):
    """How often a gradient was added in place."""
    count, add = [], gathered.Gathered.add
    monkeypatch.setattr(gathered.Gathered, "add", lambda *given: (count.append(1), add(*given)))
    monkeypatch.setattr(gathered, "_LARGE", 0)
    return count


def one_by_one(monkeypatch):
    monkeypatch.setattr(Task, "_gathers", lambda *given: False)
    monkeypatch.setattr(gathered, "may_receive", lambda whole: False)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("leaf", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", list(READS))
def test_bits_are_those_of_sums_one_by_one(monkeypatch, added, name, dtype, leaf, zeros):
    found = gradient(READS[name], leaf, dtype, zeros=zeros)
    assert bool(added) is (name != "one row")
    del added[:]
    one_by_one(monkeypatch)
    expected = gradient(READS[name], leaf, dtype, zeros=zeros)
    assert found.numpy().tobytes() == expected.numpy().tobytes() and not added
    assert found._version == expected._version and found.stride() == expected.stride()


def test_hooks_see_the_same_gradients(monkeypatch, added):
    def seen():
        told = []

        def around(x):
            x = x * 1
            x.register_hook(lambda grad: told.append(grad.clone()))
            x.retain_grad()
            kept.append(x)
            return x

        kept = []
        grad = gradient(READS["rows"], False, "f4", around)
        return [t.numpy().tobytes() for t in (*told, kept[0].grad, grad)]

    found = seen()
    assert added
    one_by_one(monkeypatch)
    assert seen() == found


def test_hooks_on_a_part_take_the_general_way(added):
    w = tj.ones(3, 2, requires_grad=True)
    x, told = w * 1, []
    rows = list(x)
    for row in rows:
        row.grad_fn.register_hook(lambda *grads: told.append(grads))
    sum((row * row).sum() for row in rows).backward()
    assert len(told) == 3 and w.grad.tolist() == [[2.0, 2.0]] * 3


def test_a_hook_may_keep_what_it_gets(added):
    w, kept = tj.ones(4, 2, requires_grad=True), []
    x = w * 1
    x.register_hook(kept.append)
    loss = sum(row.sum() for row in x)
    loss.backward(retain_graph=True)
    before = kept[0].tolist()
    loss.backward()
    assert added and kept[0].tolist() == before and kept[0] is not kept[1]


def test_gradients_of_gradients_are_the_general_way(added):
    w = tj.arange(6.0).reshape(3, 2).requires_grad_()
    loss = sum((row ** 3).sum() for row in w * 1)
    (grad,) = tj.autograd.grad(loss, w, create_graph=True)
    assert not added
    grad.sum().backward()
    assert w.grad.tolist() == (w.detach() * 6).tolist()


def test_errors_are_the_same():
    w = tj.ones(3, 2, requires_grad=True)
    rows = list(w * 1)
    loss = (rows[0] * rows[1]).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_other_dtypes_take_the_general_way(added):
    for kind in (tj.float16, tj.bfloat16, tj.complex64):
        w = tj.ones(3, 2, dtype=kind, requires_grad=True)
        sum((row * row).sum().real if kind is tj.complex64 else (row * row).sum()
            for row in w * 1).backward()
        assert w.grad.dtype is kind
    assert not added


def test_a_leaf_takes_the_sum_over(monkeypatch):
    w, seen, takes = tj.ones(64, 256, requires_grad=True), [], gathered.Gathered.add

    def add(self, *given):
        seen.append(id(self.whole._storage))
        takes(self, *given)

    monkeypatch.setattr(gathered.Gathered, "add", add)
    sum(row.sum() for row in w).backward()
    count = sys.getrefcount(w.grad._storage)
    assert set(seen) == {id(w.grad._storage)} and count == 2 and (w.grad == 1).all()


@pytest.mark.parametrize("name", ["rows and the whole", "the whole often", "again"])
def test_a_sum_out_of_place_ends_what_was_gathered(monkeypatch, added, name):
    expected = gradient(READS[name], False, "f4")
    first, takes = [1], gathered.Gathered.takes
    monkeypatch.setattr(gathered.Gathered, "takes",
                        lambda *given: False if first and first.pop() else takes(*given))
    monkeypatch.setattr(gathered, "is_large", lambda whole: False)
    assert gradient(READS[name], False, "f4").numpy().tobytes() == expected.numpy().tobytes()


def test_no_reference_is_lost_or_kept(monkeypatch):
    monkeypatch.setattr(gathered, "_LARGE", 0)
    w = tj.ones(4, 3, requires_grad=True)

    def run(times):
        for _ in range(times):
            w.grad = None
            sum(row.sum() for row in w * 1).backward()

    run(600)  # until the native functions are made
    assert_level(run, [w, w._storage, None, True, False])
