"""Every row of tests/opinfo.py mapped over: what `vmap` gives is what its samples give one by one,
and so are gradients, of samples within the mapped function and of whole tensors around it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tracejit
from tests.opinfo import OpInfo, Sample, rows
from tests.ops.test_opinfo import flat, ours
from tests.shares import share
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.types import FLOATING, complex128, float64

REFUSED = ("vmap: We do not support batching operators that can output dynamic shape",
           "vmap: It looks like you're calling .item()", "vmap: as_strided is not supported",
           "vmap: inplace arithmetic", "it has a value for each sample")


class Leaves:
    """The arrays of a call, taken out and put back."""

    def __init__(self, sample: Sample, constant: tuple):
        self.sample = sample
        self.arrays: list[np.ndarray] = []
        self._walk((sample.args, sample.kwargs), self.arrays.append)
        variable: list[np.ndarray] = []
        self._walk(([x for k, x in enumerate(sample.args) if k not in constant],
                    [x for k, x in sample.kwargs.items() if k not in constant]), variable.append)
        self.variable = [any(x is y for y in variable) for x in self.arrays]

    def call(self, function: Callable[..., Any], tensors: list[Any]) -> list[Tensor]:
        given = iter(tensors)
        args, kwargs = self._walk((self.sample.args, self.sample.kwargs), lambda _: next(given))
        return [x for x in flat(function(*args, **kwargs)) if isinstance(x, Tensor)]

    def _walk(self, value: Any, leaf: Callable[[np.ndarray], Any]) -> Any:
        if isinstance(value, np.ndarray):
            return leaf(value)
        if type(value) in (list, tuple):
            return type(value)([self._walk(v, leaf) for v in value])
        if isinstance(value, dict):
            return {k: self._walk(v, leaf) for k, v in value.items()}
        return value


def calls(row: OpInfo, kind: Any) -> Iterator[tuple[Leaves, list[np.ndarray]]]:
    """Calls of a row, each with its arrays and others for a second sample."""
    name = row.name.encode()
    one, other = (np.random.default_rng(zlib.crc32(name) + k) for k in (0, 1))
    for first, second in zip(row.samples(one, kind), row.samples(other, kind)):
        a, b = (Leaves(x, row.constant) for x in (first, second))
        same = [x.shape for x in a.arrays] == [x.shape for x in b.arrays] and repr(
            first.kwargs) == repr(second.kwargs)
        if a.arrays:
            yield a, [np.stack([x, y if same else x]) for x, y in
                      zip(a.arrays, b.arrays if same else a.arrays)]


def patterns(count: int) -> list[tuple[int | None, ...]]:
    """Which of `count` arguments are mapped over: all, and each alone."""
    alone = [tuple(0 if k == n else None for k in range(count)) for n in range(count)]
    return list(dict.fromkeys([(0,) * count, *alone]))


def tensors(wholes: list[np.ndarray], dims: tuple[int | None, ...],
            needs: list[bool]) -> list[Tensor]:
    made = [tracejit.tensor(w if d == 0 else w[0]) for w, d in zip(wholes, dims)]
    return [x.requires_grad_(need and x.dtype.category >= FLOATING)
            for x, need in zip(made, needs)]


def slices(given: list[Tensor], dims: tuple[int | None, ...], k: int) -> list[Tensor]:
    return [x[k] if d == 0 else x for x, d in zip(given, dims)]


def close(got: Tensor, want: Tensor, note: Any) -> None:
    assert got.shape == want.shape and got.dtype is want.dtype, (note, got.shape, want.shape)
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), 1e-9, 1e-9,
                               err_msg=repr(note))


def weighted(found: list[Tensor]) -> Tensor:
    """A number that depends on all results that have gradients."""
    total = tracejit.zeros((), dtype=float64)
    for k, x in enumerate(found):
        if x.dtype.category >= FLOATING:
            real = tracejit.view_as_real(x) if x.is_complex() else x
            weights = (tracejit.arange(real.numel(), dtype=float64) + 1 + k).reshape(real.shape)
            total = total + (real.double() * weights.cos()).sum()
    return total


CASES = [pytest.param(row, id=repr(row), marks=share(repr(row), 16)) for row in rows()]


@pytest.mark.parametrize("row", CASES)
def test_a_row_mapped_over_is_its_samples(row):
    kind = (complex128 if row.dtypes[0].is_complex else float64
            if float64 in row.dtypes else row.dtypes[0])
    for leaves, wholes in calls(row, kind):
        for dims in patterns(len(wholes)):
            check(row, leaves, wholes, dims)


def check(row: OpInfo, leaves: Leaves, wholes: list[np.ndarray],
          dims: tuple[int | None, ...]) -> None:
    note = row, leaves.sample, dims
    needs = [row.differentiable and x for x in leaves.variable]
    around, one_by_one = tensors(wholes, dims, needs), tensors(wholes, dims, needs)

    def function(*given: Tensor) -> tuple[Tensor, ...]:
        return tuple(leaves.call(ours(row), list(given)))

    try:
        found = tracejit.vmap(function, in_dims=dims, randomness="same")(*around)
    except RuntimeError as refused:
        if any(text in str(refused) for text in REFUSED):
            return
        raise
    each = [function(*slices(one_by_one, dims, k)) for k in (0, 1)]
    want = [tracejit.stack(parts) for parts in zip(*each)]
    for got, expected in zip(found, want, strict=True):
        close(got, expected, note)
    if any(needs) and weighted(want).requires_grad:
        gradients(note, function, found, want, around, one_by_one, dims)


def gradients(note: Any, function: Any, found: Any, want: Any, around: list[Tensor],
              one_by_one: list[Tensor], dims: tuple[int | None, ...]) -> None:
    wrt = [k for k, x in enumerate(around) if x.requires_grad]
    expected = tracejit.autograd.grad(weighted(want), [one_by_one[k] for k in wrt],
                                      allow_unused=True, materialize_grads=True)
    got = tracejit.autograd.grad(weighted(list(found)), [around[k] for k in wrt],
                                 allow_unused=True, materialize_grads=True)
    for g, e in zip(got, expected):
        close(g, e, (*note, "around"))
    plain = [x.detach() for x in around]
    derivative = tracejit.func.grad(lambda *xs: weighted(list(function(*xs))), tuple(wrt))
    within = tracejit.vmap(derivative, in_dims=dims, randomness="same")(*plain)
    for k in (0, 1):
        for g, e in zip(within, derivative(*slices(plain, dims, k))):
            close(g[k], e, (*note, "within"))


@pytest.mark.parametrize("jit", [lambda f: f, tracejit.script], ids=["plain", "script"])
def test_a_part_that_differs_between_samples_is_not_written(jit):
    def written(x, i):
        x[i][0].zero_()
        return x

    x, i = tracejit.ones(2, 3, 2), tracejit.tensor([1, 2])
    with pytest.raises(RuntimeError, match="vmap: inplace arithmetic on x"):
        jit(lambda x, i: tracejit.func.vmap(written)(x, i))(x, i)
    read = jit(lambda x, i: tracejit.func.vmap(lambda x, i: x[i] * i)(x, i))
    assert read(x, i).tolist() == [[1, 1], [2, 2]]
