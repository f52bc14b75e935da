"""`apply_`, `map_`, `map2_`, `reversed`, and whether tensors share memory, as in PyTorch."""

from __future__ import annotations

import pytest

import tracejit

CALLS = """
x.t().apply_(lambda v: v * 2), x
t.arange(3).apply_(lambda v: v + 1)
t.arange(3).apply_(lambda v: v + 0.5)
t.tensor([True]).apply_(lambda v: type(v) is bool)
t.ones(2, dtype=t.float16).apply_(lambda v: v + 1)
t.ones(1, requires_grad=True).apply_(lambda v: v)
x.apply_(3)
y.map_(x, lambda a, b: a + b)
y.map_(t.ones(3), lambda a, b: a + b)
y.map2_(x, t.tensor(2.0), lambda a, b, c: a + b * c)
y.map_(x.double(), lambda a, b: a)
y.map_(t.ones(3, requires_grad=True), lambda a, b: a)
x.is_set_to(x), x.is_set_to(x.detach()), x.is_set_to(x[:1]), x.is_set_to(x.clone())
x.t().is_set_to(x), x.view(6).is_set_to(x), t.zeros(0).is_set_to(t.zeros(0))
""".strip().split("\n")


def shown(library, call):
    x = library.arange(6.0).reshape(2, 3)
    try:
        found = repr(eval(call, {"t": library, "x": x, "y": library.zeros(2, 3)}))
    except (RuntimeError, TypeError) as error:
        found = type(error).__name__ + str(error)
    return found.replace("torch.", "tracejit.")


@pytest.mark.oracle
@pytest.mark.parametrize("call", CALLS)
def test_elements_are_those_of_pytorch(call):
    torch = pytest.importorskip("torch")
    assert shown(tracejit, call) == shown(torch, call)


def test_a_write_counts_and_ends_the_segment():
    @tracejit.script
    def called(x):
        y = (x * 2).apply_(lambda v: v + 1)
        return y * x, x.is_set_to(y)

    for k in range(3):
        found, same = called(tracejit.ones(2) * k)
        assert found.tolist() == [k * (2 * k + 1.0)] * 2 and not same
    assert "the function calls apply_()" in str(called.report().breaks)
    x = tracejit.ones(2)
    before = x._version
    assert x.apply_(lambda v: v)._version == before + 1


def test_reversed_gives_a_tensor():
    def f(x):
        total = 0
        for row in reversed(x):
            total = total * 2 + row
        return reversed(x), total

    x = tracejit.arange(6.0, requires_grad=True).reshape(3, 2)
    for function in (f, tracejit.script(f), tracejit.trace(f)):
        turned, total = function(x)
        assert turned.tolist() == [[4, 5], [2, 3], [0, 1]] and turned.requires_grad
        assert total.tolist() == [20, 27]
    one = tracejit.tensor(3.0)
    assert reversed(one) is one
