"""Running results of functions of trees against PyTorch's, eager and captured."""

import numpy as np
import pytest

import tracejit
from tracejit._higher_order_ops.associative_scan import associative_scan as ours

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("torch._higher_order_ops.associative_scan").associative_scan
pytestmark = pytest.mark.oracle


def linear(left, right):
    return left[0] * right[0], right[0] * left[1] + right[1]


@pytest.mark.parametrize("mode", ["eager", "script", "trace"])
@pytest.mark.parametrize("size", [1, 2, 5, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_results(mode, size, reverse):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, size, 3)) for _ in range(2)]
    expected = theirs(linear, tuple(map(torch.tensor, arrays)), 1, reverse, "generic")

    def run(a, b):
        return ours(linear, (a, b), 1, reverse, "generic")

    called = run if mode == "eager" else getattr(tracejit, mode)(run)
    for _ in range(2):
        for a, b in zip(called(*map(tracejit.tensor, arrays)), expected):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-12)
