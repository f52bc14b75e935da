"""Gradients of solutions by a Cholesky factor, to the second order, beside PyTorch's.

The factor's gradient covers both triangles, whether or not the other one is zero.
"""

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.oracle
SHAPES = (((3, 3), (3, 2)), ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 2)), ((2, 1, 3, 3), (4, 3, 2)))


def factor(shape: tuple[int, ...], whole: bool, upper: bool) -> Any:
    found = np.random.default_rng(1).normal(size=shape) + 3 * np.eye(3)
    return found if whole else np.triu(found) if upper else np.tril(found)


def derivatives(library: Any, function: Any, arrays: list[Any]) -> list[Any]:
    """Return the function's value, its gradients, and those of their squares' sum."""
    inputs = [library.tensor(array, requires_grad=True) for array in arrays]
    value = function(*inputs)
    first = library.autograd.grad((value**3).sum(), inputs, create_graph=True)
    second = library.autograd.grad(sum((grad**2).sum() for grad in first), inputs)
    return [found.detach().numpy() for found in (value, *first, *second)]


def agree(function_of: Any, arrays: list[Any]) -> None:
    torch = pytest.importorskip("torch")
    import tracejit

    theirs = derivatives(torch, function_of(torch), arrays)
    ours = derivatives(tracejit, function_of(tracejit), arrays)
    captured = derivatives(tracejit, tracejit.script(function_of(tracejit)), arrays)
    for mine, replayed, wanted in zip(ours, captured, theirs, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(replayed, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize(("matrices", "sides"), SHAPES)
def test_gradients_of_cholesky_solve(
    matrices: tuple[int, ...], sides: tuple[int, ...], upper: bool, whole: bool
) -> None:
    right = np.random.default_rng(2).normal(size=sides)
    agree(
        lambda t: lambda b, a: t.cholesky_solve(b, a, upper),
        [right, factor(matrices, whole, upper)],
    )


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (0, 3, 3)])
def test_gradients_of_cholesky_inverse(shape: tuple[int, ...], upper: bool, whole: bool) -> None:
    agree(lambda t: lambda a: t.cholesky_inverse(a, upper), [factor(shape, whole, upper)])
