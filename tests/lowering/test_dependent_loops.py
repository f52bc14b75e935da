"""Loops over the same elements with a reduction between them: they must not become one kernel."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit as tj


def divided_by_total(x):
    y = tj.exp(x)
    return y, x / y.sum()


def twice_centred(x):
    y = x * 2
    z = y - y.mean()
    return y, z, (z * z).mean()


def largest_and_rest(x):
    y = x.abs()
    z = y / y.amax()
    return z, (z * x).sum(), z + x


@pytest.mark.parametrize("count", [1, 5, 40, 5000, 70001])
@pytest.mark.parametrize("function", [divided_by_total, twice_centred, largest_and_rest])
def test_a_reduction_between_two_loops(function, count: int) -> None:
    x = tj.Tensor.of_array(np.random.default_rng(0).normal(size=count).astype(np.float32))
    for got, want in zip(tj.script(function, mode="compiled")(x), function(x)):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-5)
