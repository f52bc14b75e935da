"""Tensors among the numbers that a tensor is made of: each is a number of its own dtype."""

from __future__ import annotations

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle,
              pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")]

CALLS = """
[one(1, 1), one(1)]
[[one(1), 2], [3, one()]]
[1, one(1)]
[one(1).half(), 2.5]
[one().bfloat16(), 2]
[True, one().byte()]
[one().double(), 1]
(one(1).long(), one().long())
[one() * 1j, 2.0]
[one(1).requires_grad_()]
[[1], one(1)]
[one(2), one(2)]
[1, one(2)]
[one()], int64
[one(1).bool(), 300 * one().short()], uint8
[one().long(), 2.5], float64
""".strip().split("\n")


def made(library, call, run=lambda f: f):
    names = {name: getattr(library, name) for name in ("int64", "uint8", "float64")}
    arguments = eval(f"({call},)", names | {"one": lambda *size: library.ones(size)})
    try:
        got = run(lambda data, dtype=None: library.tensor(data, dtype=dtype) * 1)(*arguments)
    except (ValueError, TypeError, RuntimeError) as error:
        return type(error), str(error)
    return got.tolist(), str(got.dtype).split(".")[1], got.requires_grad


@pytest.mark.parametrize("call", CALLS)
def test_a_tensor_in_a_list_is_a_number(call):
    assert made(tracejit, call) == made(tracejit, call, tracejit.script) == made(torch, call)


def test_a_recorded_call_reads_its_tensors_anew():
    f = tracejit.script(lambda x: tracejit.tensor([x.sum(), x.max().reshape(1)]) * 2)
    assert [f(tracejit.arange(float(n))).tolist() for n in (3, 4)] == [[6.0, 4.0], [12.0, 6.0]]
    assert not f.report().breaks
