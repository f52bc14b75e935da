"""Loops that multiply by weights, beside PyTorch: values, gradients and second derivatives."""

import re

import numpy as np
import pytest

import tracejit as tj

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
RNG = np.random.default_rng(8)
CELLS = ("LSTMCell", "GRUCell", "RNNCell")
STATES = {"LSTMCell": 2, "GRUCell": 1, "RNNCell": 1}


def pair(name, **options):
    theirs = getattr(torch.nn, name)(3, 4, **options).double()
    mine = getattr(tj.nn, name)(3, 4, **options).double()
    mine.load_state_dict({k: tj.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    return mine, theirs


def steps(cell, states, xs):
    out = []
    state = states if len(states) > 1 else states[0]
    for x in xs:
        state = cell(x, state)
        out.append(state[0] if len(states) > 1 else state)
    return out


def gradients_of(library, cell, states, xs):
    """Return the loss and gradients of the cell's weights, of the states and of the inputs."""
    hs = steps(cell, states, xs)
    loss = (library.stack(hs) ** 2).sum() + hs[-1].sin().sum()
    wrt = [*cell.parameters(), *states, xs]
    return [loss.detach(), *library.autograd.grad(loss, wrt)]


def penalty_of(library, cell, states, xs):
    """Return gradients of what gradients are made of."""
    loss = (library.stack(steps(cell, states, xs)) ** 2).sum()
    slopes = library.autograd.grad(loss, [cell.weight_hh, xs], create_graph=True)
    again = sum((s * s).sum() for s in slopes)
    return library.autograd.grad(again, [cell.weight_ih, cell.weight_hh, xs])


def given(name, count, rows=2):
    shapes = [(rows, 4)] * STATES[name] + [(count, rows, 3)]
    return [RNG.standard_normal(shape) for shape in shapes]


def tensors(library, arrays):
    return [library.tensor(a, requires_grad=True) for a in arrays]


def agree(mine, theirs):
    for x, y in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("count", [1, 2, 20])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", CELLS)
def test_loops_of_cells(name, bias, count):
    mine, theirs = pair(name, bias=bias)

    @tj.script
    def step(xs, *states):
        return gradients_of(tj, mine, states, xs)

    arrays = given(name, count)
    for _ in range(2):
        *states, xs = tensors(tj, arrays)
        found = step(xs, *states)
        *states, xs = tensors(torch, arrays)
        agree(found, gradients_of(torch, theirs, states, xs))


@pytest.mark.parametrize("name", CELLS)
def test_second_derivatives(name):
    mine, theirs = pair(name)

    @tj.script
    def step(xs, *states):
        return penalty_of(tj, mine, states, xs)

    arrays = given(name, 5)
    *states, xs = tensors(tj, arrays)
    found = step(xs, *states)
    *states, xs = tensors(torch, arrays)
    agree(found, penalty_of(torch, theirs, states, xs))


@pytest.mark.parametrize("name", CELLS)
def test_products_leave_the_loops(name):
    """A step waits for one product each way: the one with the state before it."""
    mine, _ = pair(name)

    @tj.script(fullgraph=True)
    def step(xs, *states):
        return gradients_of(tj, mine, states, xs)[1:-1]

    *states, xs = tensors(tj, given(name, 20))
    step(xs, *states)
    inside = re.findall(r"for_loop\(.*?\n  }", step.graphs["dce"], re.DOTALL)
    assert [text.count("= matmul(") for text in inside] == [1, 1]


@pytest.mark.parametrize("name", CELLS)
def test_a_later_backward(name):
    mine, theirs = pair(name)
    loss = tj.script(lambda xs, *states: tj.stack(steps(mine, states, xs)).square().sum())
    arrays = given(name, 7)
    *states, xs = tensors(tj, arrays)
    loss(xs, *states).backward()
    *others, ys = tensors(torch, arrays)
    torch.stack(steps(theirs, others, ys)).square().sum().backward()
    agree([xs.grad, *(p.grad for p in mine.parameters())],
          [ys.grad, *(p.grad for p in theirs.parameters())])


# -- sums that a user's loop adds up, and weights that gradients come to in other ways ------------
def _start(space, w, xs):
    total = w * 2.0
    for x in xs:
        total = total + x.T @ (x @ w)
    return total


def _read(space, w, xs):
    total = w * 0.0
    for x in xs:
        total = total + x.T @ (x @ (w + 0.01 * total))
    return total


def _two_sums(space, w, xs):
    one, other = w * 0.0, w * 1.0
    for x in xs:
        y = x @ w
        one = one + x.T @ y
        other = other + x.T @ y.sin()
    return one * other


def _where(space, w, xs):
    total = w * 0.0
    for x in xs:
        total = space.where(x.sum() > 0, total + x.T @ (x @ w), total)
    return total


def _if(space, w, xs):
    total = w * 0.0
    for x in xs:
        if x.sum() > 0:
            total = total + x.T @ (x @ w)
    return total


def _break(space, w, xs):
    total = w * 0.0
    for x in xs:
        total = total + x.T @ (x @ w)
        if total.sum() > 60:
            break
    return total


def _altered(space, w, xs):
    h = xs[0]
    for x in xs:
        h = space.tanh(x @ w + h @ w.T @ w)
        w = w * 0.99 + 0.01 * (x.T @ h)
    return h @ w


def _used_twice(space, w, xs):
    h = xs[0]
    for x in xs:
        h = space.tanh((x @ w + h) @ w)
    return h


def _nested(space, w, xs):
    h = xs[0]
    for x in xs:
        for _ in range(3):
            h = space.tanh(x @ w + h @ w)
    return h


@pytest.mark.parametrize("count", [1, 2, 18])
@pytest.mark.parametrize("program", [_start, _read, _two_sums, _where, _if, _break, _altered,
                                     _used_twice, _nested])
def test_sums_in_loops(program, count):
    def both(space, w, xs):
        loss = program(space, w, xs).square().sum()
        return [loss.detach(), *space.autograd.grad(loss, [w, xs])]

    run = tj.script(lambda w, xs: both(tj, w, xs))
    arrays = [0.4 * RNG.standard_normal((3, 3)), RNG.standard_normal((count, 2, 3))]
    arrays[1][0] = abs(arrays[1][0])  # the first row takes part everywhere
    for _ in range(2):
        agree(run(*tensors(tj, arrays)), both(torch, *tensors(torch, arrays)))


def test_what_a_masked_iteration_makes_is_not_added():
    """Its product is infinite there: zeros in its rows would make NaN of it."""
    xs = tj.ones(20, 2, 3)
    xs[4] = float("inf")

    @tj.script
    def gradient(w, xs):
        loss = tj.zeros(())
        for x in xs:
            if x.sum() < 100:
                loss = loss + (x @ w).square().sum()
        return tj.autograd.grad(loss, w)[0]

    found = gradient(tj.ones(3, 3, requires_grad=True), xs)
    assert found.isfinite().all() and found[0, 0] == 19 * 2 * 2 * 3
