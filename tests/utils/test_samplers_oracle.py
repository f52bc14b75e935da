"""Samplers draw when their first index is asked for, not before."""

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("lib", [torch, tracejit])
@pytest.mark.parametrize("replacement", [True, False])
def test_the_seed_that_holds_at_the_first_index(lib, replacement):
    sampler = lib.utils.data.RandomSampler(range(50), replacement=replacement)
    orders = []
    for indices in (iter(sampler), iter(sampler)):
        lib.manual_seed(0)
        orders.append(list(indices))
    assert orders[0] == orders[1]
