"""Every row of tests/opinfo.py on dual tensors: tangents are what `func.jvp` gives, of all
arguments and of each alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit
from tests.func.test_vmap_rows import Leaves, calls
from tests.opinfo import OpInfo, rows
from tests.ops.test_opinfo import ours
from tests.shares import share
from tracejit.autograd import forward_ad
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.types import FLOATING, complex128, float64

CASES = [pytest.param(row, id=repr(row), marks=share(repr(row), 16))
         for row in rows() if row.differentiable]  # fmt: skip


@pytest.mark.parametrize("row", CASES)
def test_tangents_of_a_row_are_those_of_jvp(row: OpInfo) -> None:
    kind = complex128 if row.dtypes[0].is_complex else float64
    if kind not in row.dtypes:
        kind = row.dtypes[0]
    for leaves, wholes in calls(row, kind):
        primals = [tracejit.tensor(w[0]) for w in wholes]
        moved = [k for k, (x, yes) in enumerate(zip(primals, leaves.variable))
                 if yes and x.dtype.category >= FLOATING]  # fmt: skip
        for chosen in dict.fromkeys([tuple(moved), *((k,) for k in moved)]):
            if chosen:
                check(row, leaves, primals, chosen)


def check(row: OpInfo, leaves: Leaves, primals: list[Tensor], chosen: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(chosen))
    tangents = [tracejit.tensor(np.asarray(rng.standard_normal(tuple(primals[k].shape))))
                .to(primals[k].dtype) for k in chosen]  # fmt: skip

    def function(*given: Tensor) -> tuple[Tensor, ...]:
        own = [x * 1 if x.dtype.category >= FLOATING else x for x in primals]
        for k, x in zip(chosen, given):
            own[k] = x * 1
        found = leaves.call(ours(row), own)
        return tuple(x for x in found if x.dtype.category >= FLOATING)

    at = tuple(primals[k] for k in chosen)
    if not function(*at):
        return
    want = tracejit.func.jvp(function, at, tuple(tangents))[1]
    with forward_ad.dual_level():
        results = function(*(forward_ad.make_dual(x, t) for x, t in zip(at, tangents)))
        found = [forward_ad.unpack_dual(x).tangent for x in results]
    for x, got, expected in zip(results, found, want, strict=True):
        same(got, expected, x, (row, leaves.sample, chosen))


def same(got: Any, expected: Tensor, result: Tensor, note: Any) -> None:
    if got is None:
        assert not expected.any(), note
        return
    assert got.shape == result.shape and got.dtype is result.dtype, note
    np.testing.assert_allclose(got.numpy(), expected.numpy(), 1e-9, 1e-9, err_msg=repr(note))
