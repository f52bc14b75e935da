"""Sizes, orders of dimensions, devices and numbers that tensors are asked for, or made with."""

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
m.FloatTensor([1, 2], device="cpu").tolist()
m.FloatTensor([1, 2], device="meta")
m.Tensor(2, 3, device="meta")
m.tensor([1.0]).new([1, 2], device="cpu").tolist()
repr(m.device(type="cpu", index=0))
m.device(-1)
m.device("cuda", -1)
m.ones(2, 3, 4).permute(1, 2, 0).dim_order()
m.ones(2, 1).dim_order(ambiguity_check=True)
m.ones(2, 2, 1).dim_order()
m.ones(()).dim_order(ambiguity_check=True)
m.ones(1, 3).expand(2, 3).dim_order()
m.ones(2).dim_order(ambiguity_check="all")
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
