"""A kernel that computes something else than eager mode is found by `compare`."""

from __future__ import annotations

import time

import pytest

import tracejit as tj
from tracejit.core.ops.record import REGISTRY
from tracejit.jit import compiled_function


@pytest.fixture
def segments(monkeypatch):
    """Programs of their own: a wrong one must not be found by others."""
    monkeypatch.setattr(compiled_function, "_segments", type(compiled_function._segments)())


@pytest.mark.parametrize("mode", ["compiled", "python"])
def test_a_wrong_expression_is_named_with_its_line(segments, monkeypatch, mode):
    op = REGISTRY["tanh"]
    f = tj.script(_chain, mode=mode)
    x = tj.linspace(-1, 1, 64)
    assert tj.compare(f, x).first_bad is None
    monkeypatch.setattr(op, "scalar", f"-({op.scalar})")
    compiled_function._segments.clear()
    begin = time.perf_counter()
    bad = tj.compare(tj.script(_chain, mode=mode), x).first_bad
    assert time.perf_counter() - begin < 10
    assert (bad.op, bad.location.text) == ("tanh", "y = tj.tanh(y)")


def _chain(x):
    y = x * 2 + 1
    y = tj.tanh(y)
    y = y.exp() - x
    return y / 3
