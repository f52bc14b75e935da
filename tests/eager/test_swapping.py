"""Tensors exchanged in place, as PyTorch exchanges them, and what it refuses but is right here."""

from __future__ import annotations

import pytest

import tracejit


def exchanged(t):
    """What can be seen of tensors after swaps, with library `t`."""
    swap, seen = t.utils.swap_tensors, []
    a, b = t.ones(2, requires_grad=True), t.nn.Parameter(t.zeros(3))
    a.note = 1
    swap(a, b)
    seen += [a.tolist(), b.tolist(), type(a).__name__, type(b).__name__, b.note, a.__dict__]
    made, other = b * 3, t.ones(3) * 4
    result = made.exp()
    swap(made, other)
    seen += [made.tolist(), other.tolist(), other.requires_grad, other.is_leaf, made.is_leaf]
    result.sum().backward()
    seen += [[round(x, 3) for x in b.grad.tolist()], made.grad]
    x, y = t.ones(2, requires_grad=True), t.zeros(2, requires_grad=True)
    early = (x * 2).sum()
    swap(x, y)
    with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
        early.backward()
    (x * 5).sum().backward()
    seen += [x.grad.tolist(), y.grad, x.tolist()]
    return seen


@pytest.mark.oracle
def test_swapped_tensors_are_what_they_are_in_pytorch():
    torch = pytest.importorskip("torch")
    assert exchanged(tracejit) == exchanged(torch)


def test_what_is_kept_for_backward_and_views_follow_the_memory():
    x, other = tracejit.tensor([2.0, 3.0], requires_grad=True), tracejit.zeros(5)
    kept = x * 1
    square = kept * kept
    tracejit.utils.swap_tensors(kept, other)
    square.sum().backward()
    assert x.grad.tolist() == [4.0, 6.0] and kept.tolist() == [0.0] * 5
    base, new = tracejit.zeros(3), tracejit.ones(3)
    view = base[1:]
    tracejit.utils.swap_tensors(base, new)
    new.mul_(tracejit.ones(3, requires_grad=True))
    assert view.requires_grad and not base.requires_grad and base.tolist() == [1.0] * 3


def test_captured_functions_read_what_a_parameter_is_now():
    layer = tracejit.nn.Linear(2, 1, bias=False)
    run = tracejit.script(lambda x: layer(x))
    x = tracejit.ones(1, 2)
    for weight in (tracejit.ones(1, 2), tracejit.zeros(1, 2), tracejit.ones(3, 2)):
        tracejit.utils.swap_tensors(layer.weight, tracejit.nn.Parameter(weight))
        assert run(x).tolist() == (x @ weight.t()).tolist()


def test_a_swap_in_a_captured_function_is_made_by_each_call():
    @tracejit.script
    def swapped(x, y):
        z = x * 2
        tracejit.utils.swap_tensors(x, y)
        return z + x

    x, y = tracejit.ones(2), tracejit.zeros(2)
    for value in (1.0, 0.0, 1.0):
        assert swapped(x, y).tolist() == [value * 2 + 1 - value] * 2
        assert x.tolist() == [1 - value] * 2
    assert "swap_tensors" in str(swapped.report().breaks[0])


def test_what_cannot_be_swapped():
    with pytest.raises(TypeError, match="expected tensors, got int"):
        tracejit.utils.swap_tensors(tracejit.ones(1), 3)
    held = tracejit.ones(1, requires_grad=True) * 2
    held.retain_grad()
    with pytest.raises(RuntimeError, match="no weakrefs"):
        tracejit.utils.swap_tensors(held, tracejit.ones(1))
