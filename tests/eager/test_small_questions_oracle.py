"""Sizes, devices, conditions and numbers: small things asked of tensors, and what is refused."""

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
m.Storage is m.FloatStorage
m.IntTensor([1]).new(size=(2, 3)).shape
m.zeros(1, dtype=m.complex64).new([1 + 2j]).tolist()
m.zeros(1, dtype=m.complex128).new(2, 3).shape
m.nn.Linear(1, 1).to("cpu", copy=True)
m.nn.Linear(1, 1).to("cpu", m.float32, False, True)
m.nn.Linear(1, 1).to("cpu", m.float64, True).weight.itemsize
m.nn.Linear(1, 1).to(m.ones(1).double()).weight.itemsize
m.nn.Linear(1, 1)(m.tensor(1.0))
m.nn.functional.linear(m.tensor(1.0), m.ones(3))
m.nn.FractionalMaxPool2d(2, output_ratio=(0.5, 0.5, 0.6))(m.ones(1, 1, 8, 8))
m.nn.FractionalMaxPool3d(2, output_ratio=(0.5, 0.5, 0.5, 0.6))(m.ones(1, 1, 8, 8, 8)).shape
m.nonzero(m.tensor([0, 1]), out=m.empty(0))
m.nonzero(m.tensor([0, 1]), as_tuple=True, out=m.empty(0))
m.index_select(m.arange(3.0), 0, m.tensor([1]), out=m.empty(1).long())
m.device("cuda", -1)
m.ones(2, 3, 4).permute(1, 2, 0).dim_order()
m.ones(2, 1).dim_order(ambiguity_check=True)
m.ones(2, 2, 1).dim_order()
m.ones(()).dim_order(ambiguity_check=True)
m.ones(1, 3).expand(2, 3).dim_order()
m.ones(2).dim_order(ambiguity_check="all")
m.repeat_interleave(m.ones(3), -1)
m._check(True)
m._check(False)
m._check(False, "text")
m._check(1)
m._check(m.tensor(True))
m._check_index(False, lambda: "text")
m._check_value(False, lambda: "text")
m._check_type(False, lambda: 3)
m._check_not_implemented(False)
m._check_with(ZeroDivisionError, False, lambda: "text")
m._check_tensor_all(m.tensor([True, False]), lambda: "text")
m._check_tensor_all(m.tensor([True, True]))
m._check_tensor_all(m.tensor([1, 1]))
m._check_tensor_all(True)
m.arange(4, out=m.zeros(2, 2)).tolist()
m.linspace(0, 3, 4, out=m.zeros(2, 4)[:, 1:3]).tolist()
m.logspace(0, 3, 4, out=m.zeros(2, 2, dtype=m.int64)).tolist()
m.linspace(0, 3, 4, out=m.zeros(0)).tolist()
m.tensor_split(m.tensor(6.0), 2)
m.ones(3)["a":"b"]
m.ones(3)[1.0:2]
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
