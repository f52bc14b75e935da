"""Hooks for what nodes keep: which tensors they see, and that backward reads what they kept."""

from __future__ import annotations

import pytest

import tracejit as tj
from tracejit.autograd import graph


def shown(m):
    """What hooks of module `m` are asked, gradients, and a double backward through them."""
    told = []

    def pack(x):
        told.append(("pack", tuple(x.shape), x is w or x is leaf))
        return x * 2

    def unpack(x):
        told.append(("unpack", tuple(x.shape)))
        return x

    w = m.arange(1.0, 4).requires_grad_()
    x = leaf = m.ones(2, 3, requires_grad=True)
    with m.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = (x * w).exp().sum()
        with m.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            z = (x * x).sum()
    free = (x * x).sum()
    (y + z + free).backward()
    return sorted(told), [[round(float(g), 3) for g in t.grad.flatten()] for t in (w, x)]


def histories(m):
    """Hooks see operands as they are: leaves, and what was computed with its history."""
    told = []

    def seen(x):
        told.append((x.is_leaf, x.requires_grad, x.grad_fn and x.grad_fn.name()))
        return x

    a = m.ones(2, requires_grad=True)
    b = a * 2
    with m.autograd.graph.saved_tensors_hooks(seen, lambda x: x):
        y = a * b
    kept = y.grad_fn._saved_self
    return sorted(told, key=str), kept.is_leaf, kept.requires_grad, kept.grad_fn


def double(m):
    x = m.arange(1.0, 4).requires_grad_()
    with m.autograd.graph.save_on_cpu():
        y = (x * x * x).sum()
    (first,) = m.autograd.grad(y, x, create_graph=True)
    (second,) = m.autograd.grad(first.sum(), x)
    return first.tolist(), second.tolist()


@pytest.mark.oracle
@pytest.mark.parametrize("program", [shown, histories, double])
def test_hooks_are_asked_what_those_of_pytorch_are(program):
    torch = pytest.importorskip("torch")
    assert program(tj) == program(torch)


def test_captured_functions_run_op_by_op_under_hooks():
    step = tj.script(lambda x: (x * x).sum())
    x = tj.ones(3, requires_grad=True)
    kept = []
    hooks = graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t * 3)
    for expected, mode in ((2.0, tj.enable_grad()), (6.0, hooks), (2.0, tj.enable_grad())):
        with mode:
            y = step(x)
        (grad,) = tj.autograd.grad(y, x)
        assert grad.tolist() == [expected] * 3
    assert len(kept) == 2
    assert step.report().compiles == 1


def test_hooks_inside_a_captured_function_end_the_segment():
    kept = []

    @tj.script
    def f(x):
        with graph.saved_tensors_hooks(lambda t: kept.append(1) or t, lambda t: t):
            return (x * x).sum()

    for count in (1, 2):
        x = tj.ones(3, requires_grad=True)
        f(x).backward()
        assert x.grad.tolist() == [2.0] * 3 and len(kept) == 2 * count
    assert "saved_tensors_hooks" in str(f.report().breaks[0])


def test_hooks_can_be_refused():
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"):
            graph.saved_tensors_hooks(lambda x: x, lambda x: x).__enter__()
    with graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        pass
