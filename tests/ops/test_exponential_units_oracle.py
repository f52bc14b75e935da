"""Gradients of exponential linear units far from 0 and at 0, checked with PyTorch, and of nan.

In: numbers whose exponential overflows. The branch that is not taken must not reach gradients.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

PLACES = 16 * [-math.inf, -1e5, -3.0, 0.0, 3.0, 89.0, 1e4, math.inf]


def gradients(
    lib: Any, name: str, captured: bool, places: list[float] = PLACES
) -> tuple[np.ndarray, ...]:
    def first(x: Any) -> Any:
        y = getattr(lib.nn.functional, name)(x)
        return lib.autograd.grad(y.sum(), x, create_graph=True)[0]

    x = lib.tensor(places, requires_grad=True)
    once = tracejit.script(first)(x) if captured else first(x)
    (twice,) = lib.autograd.grad(once[~once.isnan()].sum(), x)
    return once.detach().numpy(), twice.numpy()


@pytest.mark.parametrize("captured", [False, True], ids=["eager", "captured"])
@pytest.mark.parametrize("name", ["elu", "selu", "celu"])
def test_gradients_are_those_of_the_branch_taken(name: str, captured: bool) -> None:
    for got, want in zip(gradients(tracejit, name, captured), gradients(torch, name, False)):
        np.testing.assert_allclose(got, want, rtol=1e-6)


# PyTorch's gradient at nan is nan on processors with AVX2 and 1 with AVX-512, and 1 for what is
# left over after vectors: there is no one answer to compare with.
@pytest.mark.parametrize("captured", [False, True], ids=["eager", "captured"])
@pytest.mark.parametrize("name", ["elu", "selu", "celu"])
def test_the_gradient_at_nan_is_nan(name: str, captured: bool) -> None:
    once, _ = gradients(tracejit, name, captured, [math.nan] * 20)
    assert np.isnan(once).all()
