"""Sizes hold integers only, and tensors of one element are numbers to Python."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

CALLS = """
m.Size([1, 2.0])
m.Size([1, "a"])
m.Size([None])
m.Size([True, m.tensor(2), m.tensor([3]), np.int64(4)])
m.Size([m.tensor(2.0)])
m.Size(5)
m.Size([2, 3]) + [1]
m.Size([2, 3]) + (1,)
(1,) + m.Size([2])
m.Size([2]) * 3
int(m.tensor([]))
float(m.tensor([1, 2]))
complex(m.tensor([]))
int(m.tensor([[3.5]]))
m.tensor([1, 2]).item()
m.ones(3).__delitem__(0)
m.repeat_interleave(m.ones(3), -1)
m.repeat_interleave(m.arange(4).reshape(2, 2))
m.empty(2).uniform_(-3e38, 3e38)
m.empty(2).half().uniform_(-6e4, 6e4)
m.movedim(m.ones(2, 3), (0, 0), (0, 1))
m.movedim(m.ones(2, 3), (0, 1), (1, 1))
""".strip().split("\n")


def outcome(library, call):
    try:
        got = eval(call, {"m": library, "np": np})
    except Exception as error:
        return type(error), str(error).replace("tracejit", "torch")
    return type(got).__name__, got


@pytest.mark.parametrize("call", CALLS)
def test_as_in_pytorch(call):
    assert outcome(tracejit, call) == outcome(torch, call)
