"""scatter_reduce where values are equal or zero, in place, and what it refuses: as PyTorch."""

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def gradients(lib, reduce, include_self=True, zero=1.0):
    x = lib.tensor([2.0, 1.0, 3.0 * zero, 4.0], requires_grad=True)
    src = lib.tensor([2.0, 2.0 * zero, 5.0, 0.5], requires_grad=True)
    y = x.scatter_reduce(0, lib.tensor([0, 0, 1, 0]), src, reduce, include_self=include_self)
    return sum((g.tolist() for g in lib.autograd.grad(y.square().sum(), (x, src))), [])


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_equal_values_share_the_gradient(reduce):
    assert gradients(tracejit, reduce) == pytest.approx(gradients(torch, reduce))


def test_a_zero_among_factors():
    for zero in (1.0, 0.0):
        ours = gradients(tracejit, "prod", include_self=False, zero=zero)
        assert ours == pytest.approx(gradients(torch, "prod", include_self=False, zero=zero))


@pytest.mark.parametrize("first", [1.0, 0.0])
@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
def test_second_derivatives_at_zeros(zeros, first):
    """Where PyTorch refuses them; against factors that are multiplied one by one."""
    def run(lib, product):
        x = lib.tensor([first, 7.0], requires_grad=True)
        src = lib.tensor([0.0] * zeros + [2.0, 3.0, 4.0][zeros:] + [5.0], requires_grad=True)
        grads = lib.autograd.grad(product(lib, x, src).sum(), (x, src), create_graph=True)
        total = sum((g * lib.arange(1.0, len(g) + 1)).sum() for g in grads)
        return sum((g.tolist() for g in lib.autograd.grad(total, (x, src))), [])

    def at_once(lib, x, src):
        return x.scatter_reduce(0, lib.tensor([0, 0, 0, 1]), src, "prod")

    def one_by_one(lib, x, src):
        return lib.stack([x[0] * src[0] * src[1] * src[2], x[1] * src[3]])

    assert run(tracejit, at_once) == pytest.approx(run(torch, one_by_one))


@pytest.mark.parametrize("call", [
    lambda m, x, i: x.scatter_reduce(0, i, x, "median"),
    lambda m, x, i: x.scatter_reduce(0, i, x.double(), "sum"),
    lambda m, x, i: x.scatter_reduce(0, i.float(), x, "sum"),
    lambda m, x, i: x.scatter_reduce(0, 5 * i, x, "amax"),
    lambda m, x, i: x.scatter(0, i, x, reduce="divide"),
])
@pytest.mark.filterwarnings("ignore:The reduce argument")
def test_errors(call):
    said = []
    for lib in (torch, tracejit):
        with pytest.raises((RuntimeError, TypeError, NotImplementedError)) as error:
            call(lib, lib.tensor([1.0, 2.0]), lib.tensor([0, 1]))
        said.append((error.type, str(error.value).splitlines()[0]))
    assert said[0] == said[1]


@pytest.mark.filterwarnings("ignore:The reduce argument")
def test_in_place_and_by_the_older_name():
    for lib in (torch, tracejit):
        x, i = lib.tensor([1.0, 2.0, 3.0]), lib.tensor([0, 0, 2])
        assert x.scatter_reduce_(0, i, lib.tensor([4.0, 5.0, 6.0]), "amax") is x
        assert x.tolist() == [5.0, 2.0, 6.0]
        assert x.scatter(0, i, x, reduce="multiply").tolist() == [50.0, 2.0, 36.0]
        assert x.scatter(0, i, 2.0, reduce="multiply").tolist() == [20.0, 2.0, 12.0]
