"""`set_` of a tensor that a backward saved is a write to it, as in PyTorch."""

import pytest

import tracejit

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle


def to_a_tensor(t, w):
    w.set_(t.full((3,), 9.0))


def to_a_storage(t, w):
    w.set_(t.full((3,), 9.0).untyped_storage(), 0, (3,))


def to_its_own(t, w):
    w.set_(w.untyped_storage(), 0, (3,))


def another(t, w):
    t.ones(3).set_(w)


@pytest.mark.parametrize("look", [to_a_tensor, to_a_storage, to_its_own, another])
@pytest.mark.parametrize("writes", [0, 1])
def test_backward_notices(look, writes):
    def run(t):
        x, w = t.ones(3, requires_grad=True), t.full((3,), 2.0)
        for _ in range(writes):
            w.add_(1)
        y = (x * w).sum()
        look(t, w)
        try:
            y.backward()
        except RuntimeError:
            return w._version
        return w._version, x.grad.tolist()

    assert run(tracejit) == run(torch)
