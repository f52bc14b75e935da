"""Numbers of which a dtype has no element, where PyTorch looks: eager, recorded, and replayed.

In: programs of a tensor and a number, numbers that fit and do not. All must give what PyTorch
gives, or its error, whatever number a program was recorded with.
"""

from __future__ import annotations

from typing import Any

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

NUMBERS = {
    "float16": [1.5, -1e9, 70000, 2.5, float("-inf"), 1e39],
    "bfloat16": [1.5, 1e39, 2.5],
    "float32": [1.5, -1e300, float("inf"), 2.5],
    "int8": [3, 300, 4, -129],
    "uint8": [3, 256, 4],
    "int32": [3, 2**31, 5],
}
PROGRAMS = {
    "masked_fill": lambda T, x, v: x.masked_fill(x > 0, v),
    "masked_fill_": lambda T, x, v: x.clone().masked_fill_(x > 0, v),
    "fill_": lambda T, x, v: x.clone().fill_(v),
    "full": lambda T, x, v: T.full((2,), v, dtype=x.dtype),
    "scalar_tensor": lambda T, x, v: T.scalar_tensor(v, dtype=x.dtype),
    "tensor": lambda T, x, v: T.tensor([v, 1], dtype=x.dtype) if x.is_floating_point() else x,
    "pad": lambda T, x, v: T.nn.functional.pad(x, (1, 1), value=v),
    "element": lambda T, x, v: _set(x.clone(), 0, v),
    "mask": lambda T, x, v: _set(x.clone(), x > 0, v),
    "positions": lambda T, x, v: _set(x.clone(), T.tensor([1, 0]), v),
    "index_fill": lambda T, x, v: x.index_fill(0, T.tensor([0]), v),
    "index_add": lambda T, x, v: x.index_add(0, T.tensor([0, 1]), x, alpha=v),
    "scatter": lambda T, x, v: x.scatter(0, T.tensor([0]), v),
    "where": lambda T, x, v: T.where(x > 0, x, v),
    "clamp": lambda T, x, v: x.clamp(v, v),
    "clamp_min": lambda T, x, v: x.clamp_min(v),
    "clamp_max": lambda T, x, v: x.clamp(max=v),
    "add": lambda T, x, v: T.add(x, x, alpha=v),
    "addmm": lambda T, x, v: T.addmm(x, x.reshape(2, 1), x.reshape(1, 2), alpha=v, beta=v),
    "addcmul": lambda T, x, v: T.addcmul(x, x, x, value=v),
    "threshold": lambda T, x, v: T.nn.functional.threshold(x, 2, v),
    "hardtanh": lambda T, x, v: T.nn.functional.hardtanh(x, 0, abs(v)),
    "linspace": lambda T, x, v: T.linspace(0, v, 2, dtype=x.dtype),
    "pow": lambda T, x, v: x.pow(v),
}


FILLING = {
    "masked_fill": lambda x, m, v: x.masked_fill(m, v),
    "masked_fill_": lambda x, m, v: x.clone().masked_fill_(m, v),
    "index_fill": lambda x, m, v: x.index_fill(0, m.nonzero()[:, 0], v),
    "mask": lambda x, m, v: _set(x.clone(), m, v),
    "element": lambda x, m, v: _set(x.clone(), 0, v),
}


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("name", FILLING)
def test_tensors_beyond_a_dtype(name: str, kind: str) -> None:
    program = FILLING[name]
    for run in (program, tracejit.script(program, mode="graph")):
        for v in NUMBERS[kind]:
            found = []
            for T, call in ((tracejit, run), (torch, program)):
                x, wide = T.ones(2).to(getattr(T, kind)), T.float64 if type(v) is float else None
                mask = T.tensor([True, False])
                found.append(_outcome(call, x, mask, T.tensor(v, dtype=wide)))
            assert found[0] == found[1], v


def test_gradients_reach_the_tensor_filled_in() -> None:
    found = []
    for T in (tracejit, torch):
        x, v = T.ones(2), T.tensor(3.0, dtype=T.float64, requires_grad=True)
        x.masked_fill(T.tensor([True, True]), v).sum().backward()
        found.append(str(v.grad.item()))
    assert found == ["2.0", "2.0"]


def _set(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


def _outcome(call: Any, *given: Any) -> str:
    try:
        return str(call(*given).tolist())
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_beyond_a_dtype(name: str, kind: str) -> None:
    program = PROGRAMS[name]
    for captured in (False, True):
        run = tracejit.script(program, mode="graph") if captured else program
        for v in NUMBERS[kind]:
            got, want = (_outcome(call, T, T.ones(2).to(getattr(T, kind)), v)
                         for T, call in ((tracejit, run), (torch, program)))
            assert got == want, (v, captured)
