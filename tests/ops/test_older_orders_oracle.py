"""Numbers before tensors, as programs older than PyTorch 1.5 write them: what PyTorch gives."""

import warnings

import pytest

import tracejit
from tracejit.core.ops import older_orders

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:.*This overload of")]

EXPRESSIONS = """
x.add(2, y)
x.add_(0.5, y)
x.add(2, 3)
m.add(x, 2, y)
x.sub(2, y)
x.sub_(0.5, y)
m.sub(x, 2, y)
x.addcmul(2, y, y)
x.addcmul_(0.5, y, x)
m.addcmul(x, 2, y, x)
x.addcdiv(2, y, x)
x.addcdiv_(-0.5, x, y)
m.addcdiv(x, 2, y, x)
x.addmm(2, x, y)
x.addmm(2, 3, x, y)
x.addmm_(2, 3, y, y)
x.addmm_(2, y, y)
m.addmm(2, x, y, y)
m.addmm(2, x, 3, y, y)
v.addmv(2, x, v)
v.addmv_(2, 3, x, v + 0)
m.addmv(2, v, 3, x, v)
x.addr_(2, v, v)
x.addr(2, 3, v, v)
m.addr(2, x, 3, v, v)
x.addbmm_(2, 3, b, b)
m.addbmm(2, x, b, b)
b.baddbmm_(2, 3, b + 0, b + 0)
m.baddbmm(2, b, b, b)
m.baddbmm(2, b, 3, b, b)
x.add(y, 2)
x.add(2, y, y)
x.addcmul(y, y, 2)
x.addmm(1, 2, 3, x, y)
x.add(2, y, alpha=2)
""".strip().splitlines()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_it_is_what_pytorch_gives(expression):
    def found(library):
        x = library.tensor([[1.0, 2.0], [3.0, 4.0]])
        names = {"m": library, "x": x, "y": x.t() + 0.5, "v": x[1].clone(), "b": x[None].clone()}
        try:
            return eval(expression, names).tolist()
        except TypeError:
            return "TypeError"

    assert found(tracejit) == found(torch)


def test_it_is_told_once(monkeypatch):
    monkeypatch.setattr(older_orders, "_told", set())
    x = tracejit.ones(2)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        x.add_(1, x)
        x.addcmul_(1, x, x)
    assert [str(w.message).splitlines()[0] for w in told] == ["This overload of add is deprecated:"]


def test_a_step_in_this_order_is_one_program():
    def step(p, grad, mean, square, rate):
        mean.mul_(0.9).add_(1 - 0.9, grad)
        square.mul_(0.99).addcmul_(1 - 0.99, grad, grad)
        p.addcdiv_(-rate, mean, square.sqrt().add_(1e-8))

    def after(run):
        tensors = [tracejit.full((3,), x) for x in (1.0, 0.5, 0.0, 0.0)]
        for rate in (0.1, 0.2, 0.3, 0.4):
            run(*tensors, rate)
        return tensors

    captured = tracejit.script(step)
    assert all(map(tracejit.allclose, after(captured), after(step)))
    assert captured.report().cache_misses == 1 and not captured.report().breaks
