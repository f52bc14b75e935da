"""`func` and `autograd.functional` where little is recorded, or something else comes back, beside
PyTorch's: called plainly."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit
from tracejit.utils._pytree import tree_flatten

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def numbers(T, n):
    return (T.arange(n, dtype=T.float64) + 1).sin()


def pulled_back_where_gradients_are_recorded_again(T):
    x = numbers(T, 3).requires_grad_()
    with T.no_grad():
        value, pull_back = T.func.vjp(lambda x: x**2, x)
    found, = pull_back(T.ones(3, dtype=T.float64))
    return value, found, T.autograd.grad(found.sum(), x)


def rows_one_by_one_are_not_mapped(T):
    class Same(T.autograd.Function):
        @staticmethod
        def forward(x):
            return x.clone()

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, grad):
            return grad * len(grad.nonzero())

    return T.func.jacrev(lambda x: Same.apply(x) * x, chunk_size=1)(numbers(T, 3))


def the_second_derivatives_of_what_depends_on_nothing(T):
    x, y = numbers(T, 2), numbers(T, 3)
    return T.autograd.functional.hessian(lambda x, y: T.ones(()).double(), (x, y))


VALUES = [pulled_back_where_gradients_are_recorded_again, rows_one_by_one_are_not_mapped,
          the_second_derivatives_of_what_depends_on_nothing]  # fmt: skip


@pytest.mark.parametrize("function", VALUES, ids=lambda f: f.__name__)
def test_both_give_the_same(function):
    got, want = (tree_flatten(function(T))[0] for T in (tracejit, torch))
    assert [x.requires_grad for x in got] == [x.requires_grad for x in want]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g.detach().numpy(), w.detach().numpy(), 1e-9, 1e-12)


@pytest.mark.parametrize("beside", [3, "a", None], ids=repr)
@pytest.mark.parametrize("call", [
    lambda T, f, x: T.func.grad(lambda x: (x.sum(), f(x)[1]), has_aux=True)(x),
    lambda T, f, x: T.func.vjp(f, x, has_aux=True),
    lambda T, f, x: T.func.jvp(f, (x,), (x,), has_aux=True),
    lambda T, f, x: T.func.jacrev(f, has_aux=True)(x),
], ids=["grad", "vjp", "jvp", "jacrev"])  # fmt: skip
def test_what_stands_beside_results_is_made_of_tensors(call, beside):
    said = []
    for T in (tracejit, torch):
        with pytest.raises(RuntimeError) as error:
            call(T, lambda x: (x, beside), numbers(T, 3))
        said.append(str(error.value))
    assert said[0] == said[1]


def test_chunks_with_the_same_random_numbers():
    for T in (torch, tracejit):
        found = T.vmap(lambda x: x + T.rand(()), randomness="same",  # noqa: B023
                       chunk_size=2)(T.zeros(5))
        assert found.unique().numel() == 1
