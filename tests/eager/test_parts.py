"""Gradients of parts that a recording puts side by side have the bits of sums of wholes."""

import itertools
import random

import numpy as np
import pytest

import tracejit as tj
from tracejit.core.eager import parts
from tracejit.core.eager.conditional_grad import (
    ConditionalGrad,
    condition_of,
    grad_of,
    if_false,
    if_true,
)
from tracejit.core.eager.parts import Parts, resolved_parts, together

SPECIAL = [-0.0, -0.0, 0.0, float("nan"), float("inf"), 1e-45, 3.4e38]


def leaf(size):
    return tj.linspace(-1.0, 1.5, size).requires_grad_()


def rows(rng, count, width=3):
    """Random numbers, of which many are special."""
    found = [rng.choice(SPECIAL) if rng.random() < 0.6 else rng.gauss(0, 1)
             for _ in range(count * width)]
    return tj.tensor(found).reshape(count, width)


def arrivals(rng, size, conditional):
    """Gradients of parts in the order in which they come: (first, end, gradient, condition)."""
    flags = [tj.tensor(rng.random() < 0.5) for _ in range(6)]
    found = []
    for _ in range(rng.randint(1, 2 * size)):
        first = rng.randrange(size)
        end = first + (1 if rng.random() < 0.8 else rng.randint(1, size - first))
        when = True
        if conditional and rng.random() < 0.7:
            when = rng.choice([if_true, if_false])(rng.choice(flags))
        found.append((first, end, rows(rng, end - first), when))
    return found


def under(grad, when):
    return grad if when is True else ConditionalGrad(grad, when)


def arrives(grad):
    when = condition_of(grad)
    return when if type(when) is bool else bool(when.tensor())


def sum_of_wholes(base, found, size):
    """What an engine computes that knows which gradients arrive."""
    total = None if base is None or not arrives(base) else grad_of(base)
    for first, end, grad, when in found:
        if arrives(under(grad, when)):
            whole = tj.zeros(size, grad.shape[1])
            whole[first:end] = grad
            total = whole if total is None else total + whole
    return total


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("based", ["none", "plain", "conditional"])
@pytest.mark.parametrize("conditional", [False, True])
def test_bits_are_those_of_sums_of_wholes(monkeypatch, conditional, based, dim):
    rng, joined = random.Random(5), []
    cat = parts.cat
    monkeypatch.setattr(parts, "cat", lambda *given: (joined.append(1), cat(*given))[1])
    monkeypatch.setattr(parts, "_FEW", 2)
    for _ in range(150):
        size = rng.randint(1, 12)
        base = None if based == "none" else rows(rng, size)
        if based == "conditional":
            base = ConditionalGrad(base, if_true(tj.tensor(rng.random() < 0.5)))
        found = arrivals(rng, size, conditional)
        held = None if base is None else under(grad_of(base).movedim(0, dim), condition_of(base))
        for first, end, grad, when in found:
            part = Parts(dim, size, (first, end), under(grad.movedim(0, dim), when))
            held = part if held is None else together(held, part)
        total, expected = resolved_parts(held), sum_of_wholes(base, found, size)
        assert arrives(total) is (expected is not None)
        if expected is not None:
            got = grad_of(total).movedim(0, dim).contiguous().numpy()
            wrong = np.flatnonzero(got.ravel().view("u4") != expected.numpy().ravel().view("u4"))
            nans = np.isnan(got.ravel()) & np.isnan(expected.numpy().ravel())
            assert all(nans[wrong]), (size, found)
    assert len(joined) > 50


READS = {
    "elements": lambda x: [x[k] for k in range(12)],
    "twice": lambda x: [x[k % 9] * (k + 1) for k in range(18)],
    "beside the whole": lambda x: [(x * x).sum(), *(x[k] for k in range(10))],
    "before the whole": lambda x: [*(x[k] for k in range(10)), (x * x).sum()],
    "from the end": lambda x: [x[-k] for k in range(1, 12)],
    "one from the end": lambda x: [x[k - 1] for k in range(11)],
    "pieces": lambda x: [x[k:k + 2].prod() for k in range(0, 12, 2)] + [x[k] for k in range(9)],
    "overlapping": lambda x: [x[k:k + 3].prod() for k in range(10)],
    "with gaps": lambda x: [x[k] for k in (0, 1, 2, 4, 5, 6, 8, 10, 12)],
    "unbound": lambda x: list(x[:12].unbind()),
}


@pytest.mark.parametrize("name", list(READS))
def test_captured_gradients_are_those_of_eager_mode(name):
    read = READS[name]

    def step(x):
        total = tj.zeros(())
        for k, part in enumerate(read(x)):
            total = total + (part * (k + 0.5)) * part
        return tj.autograd.grad(total, x)[0]

    compiled = tj.script(step)
    for size in (13, 40, 13, 17):
        x = leaf(size)
        assert compiled(x).numpy().tobytes() == step(x).numpy().tobytes(), size
    assert compiled.report().compiles == 1, "another size is no other program"


def test_parts_are_joined_and_not_added():
    @tj.script
    def step(x):
        return tj.autograd.grad(sum(x[k] * x[k] for k in range(20)), x)[0]

    step(leaf(23))
    names = [node.op.name for graph in step.report().graphs for node in graph.nodes]
    assert names.count("cat") == 1 and names.count("slice_backward") == 1


def test_gradients_in_a_loop_whose_flags_come_late():
    def step(rates, data):
        s = [0.0 * rates[k] for k in range(12)]
        total = tj.zeros(())
        for row in data:
            s = [s[k] * (1.0 - rates[k]) + rates[k - 1] * s[k - 1] * 0.5 + row for k in range(12)]
            total = total + s[-1]
        return tj.autograd.grad(total, (rates, data))

    compiled = tj.script(step)
    for count in (1, 3, 40):
        rates, data = leaf(12), leaf(count)
        for a, b in zip(compiled(rates, data), step(rates, data), strict=True):
            assert tj.allclose(a, b, rtol=1e-5), count


def test_hooks_on_parts_and_wholes_see_what_they_see_in_eager_mode():
    def step(x):
        told = []
        x = x * 1
        x.register_hook(lambda grad: told.append(grad * 1))
        parts = [x[k] for k in range(10)]
        parts[3].register_hook(lambda grad: grad * 2)
        return (*tj.autograd.grad(sum(p * p for p in parts), (x, parts[4])), *told)

    x = leaf(12)
    for a, b in itertools.zip_longest(tj.script(step)(x), step(x)):
        assert a.numpy().tobytes() == b.numpy().tobytes()


def test_gradients_of_gradients():
    def step(x):
        (grad,) = tj.autograd.grad(sum(x[k] ** 3 for k in range(11)), x, create_graph=True)
        return grad, *tj.autograd.grad((grad * grad).sum(), x)

    x = leaf(12)
    for a, b in zip(tj.script(step)(x), step(x), strict=True):
        assert tj.allclose(a, b, rtol=1e-6)
