"""Parameters that optimizers refuse."""

import pytest

import tracejit
from tracejit import optim


def test_groups_all_have_names_or_none_has():
    p, q = tracejit.zeros(2, requires_grad=True), tracejit.zeros(2, requires_grad=True)
    with pytest.raises(ValueError, match="cannot add param group without names"):
        optim.SGD([{"params": [("p", p)]}, {"params": [q]}], lr=0.1)
    with pytest.raises(ValueError, match="cannot add param group with names"):
        optim.SGD([{"params": [q]}, {"params": [("p", p)]}], lr=0.1)
    both = optim.SGD([{"params": [("p", p)]}, {"params": [("q", q)]}], lr=0.1)
    assert [group["param_names"] for group in both.param_groups] == [["p"], ["q"]]


def test_sparse_adam_refuses_complex_parameters():
    p = tracejit.zeros(2, dtype=tracejit.complex64, requires_grad=True)
    with pytest.raises(ValueError, match=r"Complex params at indices \[\[0, 0\]\]"):
        optim.SparseAdam([p])
