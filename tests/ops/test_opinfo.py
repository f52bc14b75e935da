"""Every row of tests/opinfo.py against every oracle.

PyTorch (values, dtypes, shapes, special values, gradients), finite differences (first and
second order), the same op on other memory layouts, and the compiled modes against eager.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tracejit
from tests.opinfo import OpInfo, Sample, convert, rows
from tests.shares import share
from tracejit.autograd import grad, gradcheck, gradgradcheck
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.types import FLOATING, bfloat16, complex128, dtype, dtype_named, float64
from tracejit.jit import script

ROWS = rows()


def every(select: Callable[[OpInfo], bool] = lambda row: True, one_in: int = 1) -> Any:
    """A test of each row; quick runs take one in so many (`tests/shares.py`)."""
    cases = [
        pytest.param(row, id=repr(row), marks=share(repr(row), one_in))
        for row in ROWS if select(row)
    ]  # fmt: skip
    return pytest.mark.parametrize("row", cases)


def with_dtypes() -> Any:
    pairs = [(row, d) for row in ROWS for d in row.dtypes]
    return pytest.mark.parametrize("row, d", pairs, ids=[f"{row}-{d.name}" for row, d in pairs])


def samples(row: OpInfo, d: dtype) -> list[Sample]:
    rng = np.random.default_rng(zlib.crc32(row.name.encode()))
    return list(row.samples(rng, d))


def differentiable(row: OpInfo) -> bool:
    return row.differentiable


def precise(row: OpInfo) -> dtype:
    """The dtype in which gradients are compared."""
    return complex128 if row.dtypes[0].is_complex else float64


# -- calling ---------------------------------------------------------------------------------------


def ours(row: OpInfo) -> Callable[..., Any]:
    if row.function is not None:
        return row.function
    return getattr(tracejit, row.name.partition(".")[0])


def of_torch(row: OpInfo, torch: Any) -> Callable[..., Any]:
    if callable(row.torch):
        return row.torch
    if row.torch is None and row.function is not None:
        return row.function
    return getattr(torch, row.torch or row.name.partition(".")[0])


def call(function: Callable[..., Any], sample: Sample, tensor: Callable[[np.ndarray], Any],
         dtype_of: Callable[[dtype], Any] = lambda d: d) -> list[Any]:
    args = convert(sample.args, tensor, dtype_of)
    return flat(function(*args, **convert(sample.kwargs, tensor, dtype_of)))


def flat(found: Any) -> list[Any]:
    return [y for x in found for y in flat(x)] if isinstance(found, (tuple, list)) else [found]


def tensor(array: np.ndarray) -> Any:
    """A tensor over its own copy; the layout is kept where it is not contiguous."""
    return Tensor.of_array(array.copy() if array.flags.c_contiguous else array)


def torch_tensor(torch: Any) -> Callable[[np.ndarray], Any]:
    def make(array: np.ndarray) -> Any:
        if array.dtype == ml_dtypes.bfloat16:
            return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
        return torch.from_numpy(array.copy())

    return make


def value(x: Any) -> np.ndarray:
    """The elements of a tensor of either library."""
    if isinstance(x, Tensor):
        return np.array(x.detach().array)
    if "bfloat16" in str(getattr(x, "dtype", "")):
        return x.detach().float().numpy().astype(ml_dtypes.bfloat16)
    if hasattr(x, "resolve_conj"):
        x = x.resolve_conj().resolve_neg()
    return x.detach().numpy() if hasattr(x, "detach") else np.asarray(x)


# -- comparing -------------------------------------------------------------------------------------


def agree(got: list[Any], want: list[Any], ulp: float, cancel: float, note: Any) -> None:
    assert len(got) == len(want), note
    for g, w in zip(map(value, got), map(value, want)):
        assert g.dtype == w.dtype, f"{note}: dtype {g.dtype}, expected {w.dtype}"
        assert g.shape == w.shape, f"{note}: shape {g.shape}, expected {w.shape}"
        close(g, w, ulp, cancel, note)


def close(got: np.ndarray, want: np.ndarray, ulp: float, cancel: float, note: Any) -> None:
    """Equal where not finite; else within `ulp` of each element and `cancel` eps of the largest."""
    if got.dtype.kind in "biu":
        assert np.array_equal(got, want), f"{note}: {got} != {want}"
        return
    if ulp == 0 and cancel == 0:
        same = (got == want) | (got != got) & (want != want)
        assert same.all(), f"{note}: {got} != {want}"
        if got.dtype.kind != "c":
            assert (np.signbit(got) == np.signbit(want))[got == 0].all(), f"{note}: {got} != {want}"
        return
    eps = float(ml_dtypes.finfo(got.dtype).eps)
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    g, w = got.astype(wide), want.astype(wide)
    odd = ~np.isfinite(w)
    assert ((g == w) | np.isnan(g) & np.isnan(w))[odd].all(), f"{note}: {got} != {want}"
    g, w = g[~odd], w[~odd]
    largest = np.abs(w).max(initial=0)
    tiny = float(ml_dtypes.finfo(got.dtype).smallest_normal)
    allowed = eps * (ulp * np.maximum(np.abs(w), tiny) + cancel * largest)
    assert (np.abs(g - w) <= allowed).all(), f"{note}: {got} != {want}"


# -- PyTorch ---------------------------------------------------------------------------------------


@pytest.mark.oracle
@with_dtypes()
def test_values_agree_with_pytorch(row: OpInfo, d: dtype) -> None:
    torch = pytest.importorskip("torch")
    for sample in samples(row, d):
        compare_with_torch(torch, row, sample)


def compare_with_torch(torch: Any, row: OpInfo, sample: Sample) -> None:
    want = call(of_torch(row, torch), sample, torch_tensor(torch), lambda t: getattr(torch, t.name))
    got = call(ours(row), sample, tensor)
    agree(got, want, row.ulp, row.cancel, sample)


@pytest.mark.oracle
@every(lambda row: row.specials and row.dtypes[0].is_floating_point)
def test_special_values_agree_with_pytorch(row: OpInfo) -> None:
    torch = pytest.importorskip("torch")
    for sample in samples(row, row.dtypes[0]):
        for special in (np.nan, np.inf, -np.inf, -0.0):
            odd = replaced(sample, lambda a, s=special: with_special(a, s))
            compare_with_torch(torch, row, odd)


def replaced(sample: Sample, change: Callable[[np.ndarray], np.ndarray]) -> Sample:
    """The sample with its floating point arrays changed."""
    def each(a: np.ndarray) -> np.ndarray:
        return change(a) if a.dtype.kind not in "biu" else a

    return Sample(convert(sample.args, each), convert(sample.kwargs, each))


def with_special(array: np.ndarray, special: float) -> np.ndarray:
    changed = array.copy()
    changed.reshape(-1)[::3] = special
    return changed


@pytest.mark.oracle
@every(differentiable)
def test_gradients_agree_with_pytorch(row: OpInfo) -> None:
    torch = pytest.importorskip("torch")
    for sample in samples(row, precise(row)):
        theirs = Leaves(torch_tensor(torch))
        want = theirs.gradients(of_torch(row, torch), row, sample, torch.autograd.grad,
                                lambda t: getattr(torch, t.name))
        got = Leaves(tensor).gradients(ours(row), row, sample, grad)
        assert [g is None for g in got] == [w is None for w in want], sample
        agree([g for g in got if g is not None], [w for w in want if w is not None],
              max(row.ulp, 16), max(row.cancel, 16), sample)


class Leaves:
    """Makes a sample's floating point and complex tensors require gradients, and remembers them."""

    def __init__(self, make: Callable[[np.ndarray], Any]):
        self.make, self.leaves = make, []

    def __call__(self, array: np.ndarray) -> Any:
        made = self.make(array)
        if array.dtype.kind in "fc":
            self.leaves.append(made.requires_grad_())
        return made

    def arguments(self, row: OpInfo, sample: Sample,
                  dtype_of: Callable[[dtype], Any] = lambda d: d) -> tuple[tuple, dict]:
        def make(place: int | str) -> Callable[[np.ndarray], Any]:
            return self.make if place in row.constant else self

        args = tuple(convert(a, make(k), dtype_of) for k, a in enumerate(sample.args))
        return args, {k: convert(a, make(k), dtype_of) for k, a in sample.kwargs.items()}

    def gradients(self, function: Callable[..., Any], row: OpInfo, sample: Sample, gradient: Any,
                  dtype_of: Callable[[dtype], Any] = lambda d: d) -> list[Any]:
        args, kwargs = self.arguments(row, sample, dtype_of)
        outputs = [y for y in flat(function(*args, **kwargs)) if y.requires_grad]
        if not outputs:
            return []
        rng = np.random.default_rng(0)
        seeds = [self.make(seed_for(rng, y)) for y in outputs]
        return list(gradient(outputs, self.leaves, seeds, allow_unused=True))


def seed_for(rng: np.random.Generator, output: Any) -> np.ndarray:
    """Gradients to start from, exact in every dtype."""
    name = str(output.dtype).rpartition(".")[2]
    values = np.asarray(rng.integers(64, 128, tuple(output.shape)) / 64)
    if dtype_named(name).is_complex:
        values = values + 1j * rng.integers(64, 128, tuple(output.shape)) / 64
    return np.asarray(values).astype(dtype_named(name).numpy)


# -- finite differences ----------------------------------------------------------------------------


def of_leaves(row: OpInfo, sample: Sample) -> tuple[Callable[..., Any], tuple]:
    """The row's function of the sample's differentiable tensors alone, and those."""
    leaves = Leaves(tensor)
    args, kwargs = leaves.arguments(row, sample)

    def function(*given: Any) -> Any:
        by_id = {id(leaf): x for leaf, x in zip(leaves.leaves, given)}
        found = flat(ours(row)(*swapped(args, by_id), **swapped(kwargs, by_id)))
        return tuple(y for y in found if y.dtype.category >= FLOATING)

    return function, tuple(leaves.leaves)


def swapped(nested: Any, by_id: dict[int, Any]) -> Any:
    if isinstance(nested, dict):
        return {k: swapped(v, by_id) for k, v in nested.items()}
    if type(nested) in (list, tuple):
        return type(nested)(swapped(v, by_id) for v in nested)
    return by_id.get(id(nested), nested)


@every(differentiable, one_in=2)
def test_gradients_agree_with_differences(row: OpInfo) -> None:
    for sample in samples(row, precise(row)):
        assert gradcheck(*of_leaves(row, sample)), sample


@every(lambda row: row.differentiable and row.second_order, one_in=4)
def test_second_gradients_agree_with_differences(row: OpInfo) -> None:
    for sample in samples(row, precise(row)):
        function, leaves = of_leaves(row, sample)
        if any(y.requires_grad for y in function(*leaves)):
            assert gradgradcheck(function, leaves), sample


# -- memory ----------------------------------------------------------------------------------------


def layouts(array: np.ndarray) -> Iterator[np.ndarray]:
    """The same shape and dtype in other layouts; repeated elements change the values."""
    yield np.asfortranarray(array)
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), array.dtype)
    wide[..., 1::2] = array
    yield wide[..., 1::2]
    yield np.broadcast_to(array[..., :1], array.shape)
    flat_copy = array.reshape(-1).copy()
    if array.ndim == 2 and array.shape[0] > 1 and array.shape[1] > 1:
        yield np.lib.stride_tricks.as_strided(flat_copy, array.shape, (array.itemsize,) * 2)


@every(lambda row: row.strides)
def test_layout_does_not_matter(row: OpInfo) -> None:
    for sample in samples(row, row.dtypes[0]):
        count = len(list(sized(sample)))
        for number in range(count):
            for other in layouts(list(sized(sample))[number]):
                got = call(ours(row), exchanged(sample, number, other), tensor)
                plain = exchanged(sample, number, np.array(other, order="C"))
                want = call(ours(row), plain, tensor)
                agree(got, want, row.ulp, row.cancel, f"{sample} strides {other.strides}")


def sized(sample: Sample) -> Iterator[np.ndarray]:
    """The sample's arrays with elements and dimensions."""
    found: list[np.ndarray] = []
    convert((sample.args, tuple(sample.kwargs.values())), lambda a: found.append(a) or a)
    yield from (a for a in found if a.size and a.ndim)


def exchanged(sample: Sample, number: int, other: np.ndarray) -> Sample:
    """The sample with its array `number` (of those with elements) replaced."""
    plain = list(sized(sample))[number]

    def each(a: np.ndarray) -> np.ndarray:
        return other if a is plain else a

    return Sample(convert(sample.args, each), convert(sample.kwargs, each))


class Inputs:
    """Makes tensors and remembers what they held."""

    def __init__(self) -> None:
        self.made: list[tuple[Any, np.ndarray]] = []

    def __call__(self, array: np.ndarray) -> Any:
        self.made.append((tensor(array), array.copy()))
        return self.made[-1][0]


@every()
def test_inputs_are_left_alone(row: OpInfo) -> None:
    for sample in samples(row, row.dtypes[0]):
        inputs = Inputs()
        results = call(ours(row), sample, inputs)
        for x, before in inputs.made:
            assert x._version == 0, sample
            assert np.array_equal(x.array, before, equal_nan=before.dtype.kind in "fc"), sample
        for y in results:
            assert isinstance(y, Tensor), sample


# -- compiled --------------------------------------------------------------------------------------


# Of the rows one in so many in quick runs.
SHARES = {"graph": 2, "compiled": 4, "python": 12}


def _compiled_cases() -> list[Any]:
    return [
        pytest.param(row, mode, id=f"{row}-{mode}", marks=share(f"{row}-{mode}", SHARES[mode]))
        for row in ROWS if row.compiled for mode in SHARES
    ]  # fmt: skip


@pytest.mark.parametrize("row, mode", _compiled_cases())
def test_compiled_agrees_with_eager(row: OpInfo, mode: str) -> None:
    called = ours(row)

    def function(*args: Any, **kwargs: Any) -> tuple:
        """The results, which may be views that no kernel makes, and copies, which a kernel must."""
        found = flat(called(*args, **kwargs))
        return (*found, *(y.clone() for y in found))

    compiled = script(function, mode=mode)
    exact = row.exact or mode == "graph"
    for d in dict.fromkeys((row.dtypes[0], row.dtypes[-1])):
        for sample in samples(row, d):
            got = call(compiled, sample, tensor)
            want = call(function, sample, tensor)
            ulp, cancel = (0, 0) if exact else (max(row.ulp, 4), max(row.cancel, 4))
            agree(got, want, ulp, cancel, sample)


@every(lambda row: row.compiled and row.differentiable, one_in=4)
def test_compiled_gradients_agree_with_eager(row: OpInfo) -> None:
    called = ours(row)
    compiled = script(lambda *args, **kwargs: tuple(flat(called(*args, **kwargs))))
    for sample in samples(row, precise(row)):
        got = Leaves(tensor).gradients(compiled, row, sample, grad)
        want = Leaves(tensor).gradients(ours(row), row, sample, grad)
        assert [g is None for g in got] == [w is None for w in want], sample
        agree([g for g in got if g is not None], [w for w in want if w is not None],
              max(row.ulp, 16), max(row.cancel, 16), sample)


def test_rows_have_known_dtypes() -> None:
    assert len(ROWS) > 100
    assert bfloat16 is dtype_named("bfloat16")
