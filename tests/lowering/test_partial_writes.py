"""Writes to parts of tensors: the part alone is stored, and every reader sees what it should."""

import numpy as np
import pytest

import tracejit as tj
from tests.lowering.test_loop_kernel import MODES, agrees, loops


def _stencil(u, times):
    u = u.clone()
    for _ in times:
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] - 4 * u[1:-1, 1:-1])
    return u


def _scaled(u, times):
    u = u.clone()
    for t in times:
        u[1:-1, ::2] *= 0.5 + t
    return u


def _read_before_and_after(u, times):
    u, total = u.clone(), u.sum() * 0
    for t in times:
        total = total + u[0].sum()
        u[:2] = u[1:3] + t
        total = total + u.sum()
    return u + total


def _two_parts(u, times):
    u = u.clone()
    for t in times:
        u[0] = u[-1].clone() * t + 1
        u[2:, 1] = u[:-2, 2]
    return u


def _two_tensors(u, times):
    u, v = u.clone(), u * 2
    for _ in times:
        u[1:], v[:, 1:] = u[1:] + v[:-1], v[:, :-1] - u[:, 1:]
    return u - v


def _in_a_branch(u, times):
    u = u.clone()
    for t in times:
        if t > 1:
            u[1:3] += t
        else:
            u[:, 0] -= 1
    return u


FUNCTIONS = [_stencil, _scaled, _read_before_and_after, _two_parts, _two_tensors, _in_a_branch]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("rows", [5, 70, 600])
def test_parts_of_what_a_loop_carries(function, rows):
    """A small tensor is local memory, a larger one is changed in place, a large one is shared."""
    u = tj.tensor(np.random.default_rng(rows).normal(size=(rows, rows)))
    times = tj.tensor(np.linspace(0, 2, 18))
    scripted = tj.script(function)
    np.testing.assert_allclose(scripted(u, times).numpy(), function(u, times).numpy(),
                               rtol=1e-12, atol=1e-12)
    assert "for_loop" in scripted.graphs["captured"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_through_parts(function):
    rng, results = np.random.default_rng(1), []
    start = rng.normal(size=(6, 6))
    for each in (function, tj.script(function)):
        u = tj.tensor(start, requires_grad=True)
        times = tj.tensor(np.linspace(0, 2, 18), requires_grad=True)
        results.append(tj.autograd.grad((each(u, times) ** 2).sum(), (u, times),
                                        allow_unused=True))
    for one, other in zip(*results):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("turn", [False, True])
def test_parts_of_an_argument_that_lies_in_strides(turn):
    def changed(u):
        u[1:-1, 1:] += 2 * u[1:-1, :-1]
        u[::2] = u[::2] * 3
        return u.sum()

    found = []
    for each in (changed, tj.script(changed)):
        whole = tj.arange(48, dtype=tj.float64).reshape(6, 8)
        u = whole.t() if turn else whole[:, 1:7]
        found.append((each(u).item(), whole.tolist()))
    assert found[0] == found[1]


HEAT = """
graph heat(in0: float64[s0, s1]) where s0=300 in0.size[0], s1=90 in0.size[1]:
  %0: float64[s0, s1] = for_loop(%in0, trip_count=3, carried=1, scanned=0, reverse=False) {
    graph body(in0: int64[], in1: float64[s0, s1]):
      %0: float64[s0 - 2, s1] = slice(%in1, dim=0, start=1, stop=s0 - 1, step=1)
      %1: float64[s0 - 2, s1 - 2] = slice(%0, dim=1, start=0, stop=s1 - 2, step=1)
      %2: float64[s0 - 2, s1 - 2] = mul(%1, 0.5)
      %3: float64[s0 - 2, s1] = slice_scatter(%0, %2, dim=1, start=1, stop=s1 - 1, step=1)
      %4: float64[s0, s1] = slice_scatter(%in1, %3, dim=0, start=1, stop=s0 - 1, step=1)
      return %4
  }
  return %0
"""


@pytest.mark.parametrize("mode", MODES)
def test_an_iteration_copies_the_part_alone(mode):
    made = agrees(HEAT, np.random.default_rng(0).normal(size=(300, 90)), mode=mode)
    assert loops(made) == ["for_loop"]
    (instruction,) = made.program.instructions
    large = [b for b in made.program.buffers if b.role == "temporary"]
    assert len(large) == 1 and instruction.kernel.loops == 3  # the loop, the part, its copy
    assert "//" not in instruction.kernel.source and "if v" not in instruction.kernel.source
