"""`func` against PyTorch: each case is one function of the library, called with both."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit
from tests.shares import share
from tracejit.utils._pytree import tree_flatten

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
CASES: list[Callable[[Any], Any]] = []
REFUSALS: list[Callable[[Any], Any]] = []


def case(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    CASES.append(function)
    return function


def refused(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    REFUSALS.append(function)
    return function


def numbers(T: Any, *shape: int, start: float = 1.0) -> Any:
    count = math.prod(shape)
    return (T.arange(count, dtype=T.float64) * 0.37 + start).sin().reshape(shape)


def _plain(tree: Any) -> tuple[list[Any], list[bool]]:
    leaves = [x for x in tree_flatten(tree)[0] if x is not None]
    return ([x.detach().numpy() if hasattr(x, "detach") else x for x in leaves],
            [bool(getattr(x, "requires_grad", False)) for x in leaves])


# -- vmap ------------------------------------------------------------------------------------------
@case
def products(T):
    return T.vmap(T.dot)(numbers(T, 4, 3), numbers(T, 4, 3, start=2.0))


@case
def dims_in_and_out(T):
    x, y = numbers(T, 3, 5), numbers(T, 5, 2)
    return T.vmap(lambda a, b: (a.unsqueeze(0) * b.sum(), b - 1), in_dims=(1, 0),
                  out_dims=(2, -1))(x, y)


@case
def trees(T):
    def f(pair, options):
        x, (y,) = pair
        return {"sum": x + y * options["scale"], "only": (y.sum(),)}

    given = (numbers(T, 3, 2), [numbers(T, 2, 3)])
    return T.vmap(f, in_dims=((0, [1]), None))(given, {"scale": numbers(T, 2)})


@case
def nested(T):
    x, y = numbers(T, 3), numbers(T, 4)
    return T.vmap(lambda a: T.vmap(lambda b: a * b - b.exp())(y))(x)


@case
def nested_over_both_dimensions(T):
    return T.vmap(T.vmap(lambda a, b: a.sin() @ b, (0, None)), (1, 0))(
        numbers(T, 2, 5, 3), numbers(T, 5, 3))


@case
def unmapped_results(T):
    return T.vmap(lambda x, c: (c * 2, 1), in_dims=(0, None), out_dims=(0, None))(
        numbers(T, 3), numbers(T, 2))


@case
def empty_batches(T):
    return T.vmap(lambda x: (x * 2, x.sum(), x @ x))(numbers(T, 0, 3))


@case
def chunks(T):
    return T.vmap(lambda x: (x.cumsum(0), x.max()), chunk_size=2)(numbers(T, 5, 3))


@case
def writes_to_samples(T):
    x = numbers(T, 3, 4)

    def f(v):
        v.mul_(2)
        v[1:].add_(v[0])
        w = v.clone()
        w[0] = v.sum()
        return w

    return T.vmap(f)(x), x


@case
def fresh_tensors_of_a_sample_are_written(T):
    def f(v):
        found = T.zeros_like(v)
        found[1] = v[0]
        other = v.new_zeros(2)
        other[0] = v[1]
        return found, other

    return T.vmap(f)(numbers(T, 3, 2))


@case
def views_of_samples(T):
    return T.vmap(lambda v: (v.t(), v[None, 0], v.reshape(-1), v.diagonal(), v[:, 1:].flip(0),
                             v.expand(2, 2, 3)[1]))(numbers(T, 4, 2, 3))


@case
def selecting_by_samples(T):
    x, k = numbers(T, 3, 4), T.tensor([2, 0, 3])
    table = numbers(T, 5, 2)
    return (T.vmap(lambda v, i: v[i])(x, k), T.vmap(lambda i: table[i])(k),
            T.vmap(lambda v, i: v.index_add(0, i.reshape(1), v[:1]))(x, k))


@case
def gradients_around(T):
    x, w = numbers(T, 3, 4).requires_grad_(), numbers(T, 4).requires_grad_()
    found = T.vmap(lambda v: (v * w).tanh().norm())(x)
    return T.autograd.grad(found.square().sum(), (x, w))


@case
def batched_rows_of_a_jacobian(T):
    x = numbers(T, 3).requires_grad_()
    y = x.sin() * x.sum()
    return T.vmap(lambda v: T.autograd.grad(y, x, v, retain_graph=True)[0])(
        T.eye(3, dtype=T.float64))


@case
def convolutions_of_samples(T):
    x, w = numbers(T, 3, 2, 4, 5), numbers(T, 3, 6, 2, 2, 3)
    F = T.nn.functional
    return (T.vmap(lambda a, b: F.conv2d(a, b, padding=1))(x.unsqueeze(1), w),
            T.vmap(lambda b: F.conv2d(x, b, stride=2))(w),
            T.vmap(lambda a: F.max_pool2d(a, 2))(x))


# -- derivatives -----------------------------------------------------------------------------------
def _loss(T, parameters, x, y):
    hidden = (x @ parameters["w"] + parameters["b"]).tanh()
    return ((hidden - y) ** 2).mean()


def _parameters(T, needs=False):
    return {"w": numbers(T, 4, 2).requires_grad_(needs), "b": numbers(T, 2).requires_grad_(needs)}


@case
def gradients_of_samples(T):
    f = T.vmap(T.func.grad(lambda p, x, y: _loss(T, p, x, y)), in_dims=(None, 0, 0))
    return f(_parameters(T), numbers(T, 5, 4), numbers(T, 5, 2))


@case
def gradients_of_samples_by_leaves(T):
    f = T.vmap(T.func.grad(lambda p, x, y: _loss(T, p, x, y)), in_dims=(None, 0, 0))
    p = _parameters(T, True)
    found = f(p, numbers(T, 5, 4), numbers(T, 5, 2))
    penalty = sum((g**2).sum() for g in found.values())
    return found, T.autograd.grad(penalty, list(p.values()))


@case
def gradients_of_gradients_of_samples(T):
    def norms(p, x):
        each = T.vmap(T.func.grad(lambda p, v: (p * v).sin().sum()), (None, 0))(p, x)
        return (each**2).sum()

    return T.func.grad(norms, (0, 1))(numbers(T, 3), numbers(T, 4, 3))


@case
def gradients_with_more(T):
    def f(x, y, scale=1.0):
        return (x * y).sum() * scale, {"seen": x + y}

    x, y = numbers(T, 3), numbers(T, 3, start=2.0)
    return (T.func.grad(f, argnums=(0, -1), has_aux=True)(x, y, scale=2.0),
            T.func.grad_and_value(f, has_aux=True)(x, y))


@case
def higher_derivatives(T):
    f = lambda x: x**3 + x.sin()  # noqa: E731
    return [T.func.grad(T.func.grad(f))(T.tensor(2.0, dtype=T.float64)),
            T.func.grad(T.func.grad(T.func.grad(f)))(T.tensor(2.0, dtype=T.float64))]


@case
def history_goes_through(T):
    x, w = numbers(T, 3).requires_grad_(), numbers(T, 3, start=3.0).requires_grad_()
    g = T.func.grad(lambda v: (v**2 * w).sum())(x)
    return g, T.autograd.grad(g.sum(), (x, w))


@case
def no_history_of_their_own(T):
    w = numbers(T, 3).requires_grad_()
    g, value = T.func.grad_and_value(lambda v: (v**2).sum() + w.sum())(numbers(T, 3))
    with T.no_grad():
        quiet = T.func.grad(lambda v: (v**2 * w).sum())(numbers(T, 3))
    inner = T.func.grad(lambda v: (v.detach() * v).sum())(numbers(T, 3))
    return g, value.requires_grad, quiet, inner


@case
def unused_arguments(T):
    return T.func.grad(lambda x, y: x.sum(), (0, 1))(numbers(T, 2), numbers(T, 3))


@case
def pulled_back(T):
    value, back = T.func.vjp(lambda x, y: (x * y, {"s": x.sum()}), numbers(T, 3), numbers(T, 3))
    given = (numbers(T, 3), {"s": T.tensor(2.0, dtype=T.float64)})
    rows = T.vmap(lambda g: back((g, {"s": g.sum()})))(T.eye(3, dtype=T.float64))
    return value, back(given), back(given), rows


@case
def pushed_forward(T):
    x, t = numbers(T, 3), numbers(T, 3, start=4.0)
    value, push = T.func.linearize(lambda v: v.exp() * v.sum(), x)
    return (T.func.jvp(lambda a, b: (a * b.sin(), b), (x, x), (t, x)), value, push(t),
            T.func.jvp(lambda v: (v * 2, v), (x,), (t,), has_aux=True))


@case
def jacobians(T):
    f = lambda x, y: {"p": x.outer(y), "q": (x.sin(), y.sum())}  # noqa: E731
    x, y = numbers(T, 2), numbers(T, 3)
    return [T.func.jacrev(f, (0, 1))(x, y), T.func.jacfwd(f)(x, y),
            T.func.jacrev(f, 1, chunk_size=2)(x, y),
            T.func.jacrev(lambda x: (x**2, x + 1), has_aux=True)(x),
            T.vmap(T.func.jacrev(lambda v: v.cumprod(0)))(numbers(T, 2, 3))]


@case
def hessians(T):
    f = lambda x, y: (x.sin() * y).prod() + (x @ y) ** 2  # noqa: E731
    x, y = numbers(T, 3), numbers(T, 3, start=2.0)
    return (T.func.hessian(f)(x, y), T.func.hessian(f, (0, 1))(x, y),
            T.vmap(T.func.hessian(f), (0, None))(numbers(T, 2, 3), y))


# -- what is refused -------------------------------------------------------------------------------
@refused
def decisions_on_samples(T):
    T.vmap(lambda x: x if x > 0 else -x)(numbers(T, 3))


@refused
def values_of_samples(T):
    T.vmap(lambda x: x * x.item())(numbers(T, 3))


@refused
def samples_written_to_others(T):
    total = T.zeros((), dtype=T.float64)
    T.vmap(lambda x: total.add_(x))(numbers(T, 3))


@refused
def random_numbers_unasked(T):
    T.vmap(lambda x: x + T.randn(()))(numbers(T, 3))


@refused
def another_randomness(T):
    T.vmap(lambda x: x, randomness="any")


@refused
def no_arguments(T):
    T.vmap(lambda: T.zeros(1))()


@refused
def nothing_mapped(T):
    T.vmap(lambda x: x, in_dims=None)(numbers(T, 2))


@refused
def only_none(T):
    T.vmap(lambda x: x, in_dims=(None,))(numbers(T, 2))


@refused
def other_structures(T):
    T.vmap(lambda x, y: x, in_dims=((0, 0), 0))(numbers(T, 2), numbers(T, 2))


@refused
def sizes_that_differ(T):
    T.vmap(T.add)(numbers(T, 2), numbers(T, 3))


@refused
def dimensions_too_large(T):
    T.vmap(T.sin, in_dims=1)(numbers(T, 2))


@refused
def numbers_mapped(T):
    T.vmap(lambda x, y: x, in_dims=(0, 0))(numbers(T, 2), 1)


@refused
def results_that_are_no_tensors(T):
    T.vmap(lambda x: 1.0)(numbers(T, 2))


@refused
def mapped_results_called_unmapped(T):
    T.vmap(lambda x: x, out_dims=None)(numbers(T, 2))


@refused
def out_dims_of_another_structure(T):
    T.vmap(lambda x: (x, x), out_dims=(0, 0, 0))(numbers(T, 2))


@refused
def dynamic_shapes(T):
    T.vmap(lambda x: x.nonzero())(numbers(T, 2, 3))


@refused
def gradients_of_vectors(T):
    T.func.grad(lambda x: x)(numbers(T, 2))


@refused
def gradients_of_no_tensors(T):
    T.func.grad(lambda x: 1.0)(numbers(T, 2))


@refused
def gradients_by_numbers(T):
    T.func.grad(lambda x: x)(1.0)


@refused
def gradients_by_integers(T):
    T.func.grad(lambda x: x.sum())(T.arange(3))


@refused
def arguments_that_are_not_there(T):
    T.func.grad(lambda x: x.sum(), argnums=1)(numbers(T, 2))


@refused
def arguments_twice(T):
    T.func.grad(lambda x: x.sum(), argnums=(0, 0))(numbers(T, 2))


@refused
def tangents_of_another_structure(T):
    T.func.jvp(lambda x: x, (numbers(T, 2),), ())


@refused
def modules_of_two_classes(T):
    T.func.stack_module_state([T.nn.Linear(1, 1), T.nn.ReLU()])


# -- autograd.functional ---------------------------------------------------------------------------
def _two(x, y):
    return x.sin() * y.sum(), (x * y.prod()).sum()


@case
def products_with_jacobians(T):
    A, x, y = T.autograd.functional, numbers(T, 2), numbers(T, 3)
    one = T.tensor(1.5, dtype=T.float64)
    return (A.vjp(_two, (x, y), (numbers(T, 2), one)), A.jvp(_two, (x, y), (x, y)),
            A.vjp(lambda v: v.prod(), y), A.jvp(lambda v: v.exp() * y, one),
            A.vjp(lambda a, b: a * 2, (x, y), x), A.jvp(lambda v: y * 1.0, x, x))


@case
def products_with_hessians(T):
    A, x, y = T.autograd.functional, numbers(T, 3), numbers(T, 3, start=2.0)
    f = lambda a, b: (a.sin() * b).prod() + a.sum()  # noqa: E731
    return (A.vhp(f, (x, y), (y, x)), A.hvp(f, (x, y), (y, x)), A.hvp(lambda v: v.sum(), x, y))


@case
def whole_jacobians(T):
    A, x, y = T.autograd.functional, numbers(T, 2), numbers(T, 3)
    return (A.jacobian(_two, (x, y)), A.jacobian(_two, (x, y), vectorize=True),
            A.jacobian(lambda v: v.exp(), x, vectorize=True, strategy="forward-mode"),
            A.hessian(lambda v: (v**3).sum() * v[0], x, vectorize=True),
            A.jacobian(lambda v: v * 0 + 1, x, strict=False))


@case
def graphs_of_products(T):
    A = T.autograd.functional
    x = numbers(T, 3).requires_grad_()
    value, found = A.vhp(lambda v: (v**3).sum(), x, numbers(T, 3), create_graph=True)
    pushed = A.jvp(lambda v: v**3, x, numbers(T, 3), create_graph=True)[1]
    return found, T.autograd.grad(found.sum() + value + pushed.sum(), x)


@refused
def vectors_left_out(T):
    T.autograd.functional.vjp(lambda x: x, numbers(T, 2))


@refused
def vectors_of_other_sizes(T):
    T.autograd.functional.jvp(lambda x: x, numbers(T, 2), numbers(T, 3))


@refused
def inputs_that_are_no_tensors(T):
    T.autograd.functional.vjp(lambda x: x, [1.0])


@refused
def results_that_do_not_depend(T):
    T.autograd.functional.jacobian(lambda x, y: x, (numbers(T, 2), numbers(T, 2)), strict=True)


@refused
def hessians_of_vectors(T):
    T.autograd.functional.hvp(lambda x: x, numbers(T, 2), numbers(T, 2))


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_a_case_gives_what_pytorch_gives(function):
    got, got_needs = _plain(function(tracejit))
    want, want_needs = _plain(function(torch))
    assert len(got) == len(want) and got_needs == want_needs
    for g, w in zip(got, want):
        assert np.shape(g) == np.shape(w)
        np.testing.assert_allclose(g, w, 1e-9, 1e-12)


SOME = [pytest.param(f, id=f.__name__, marks=share(f.__name__, 4)) for f in CASES]


@pytest.mark.parametrize("function", SOME)
def test_a_captured_case_gives_what_the_plain_one_gives(function):
    want, want_needs = _plain(function(tracejit))
    captured = tracejit.script(function, mode="graph")
    for _ in range(2):
        got, got_needs = _plain(captured(tracejit))
        assert got_needs == want_needs
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, 1e-9, 1e-12)
    assert not captured.report().breaks


@pytest.mark.parametrize("function", REFUSALS, ids=lambda f: f.__name__)
def test_both_refuse_with_one_kind_of_error(function):
    with pytest.raises(Exception) as theirs:
        function(torch)
    with pytest.raises(type(theirs.value)):
        function(tracejit)
