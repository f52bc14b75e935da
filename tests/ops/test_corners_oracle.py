"""Values and first gradients at corners: zeros of both signs, ties, ends of domains, inf, NaN.

Every row of the table of ops is called on its samples with their floats replaced by such numbers.
What differs from PyTorch with a reason stands in `DIFFERENT`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit
from tests.opinfo import OpInfo, Sample
from tests.ops.test_opinfo import (
    Leaves,
    call,
    every,
    of_torch,
    ours,
    replaced,
    samples,
    tensor,
    torch_tensor,
    value,
)
from tracejit.autograd import grad
from tracejit.core.ops.types import float32, float64

pytestmark = pytest.mark.oracle

POOLS: dict[str, list[float]] = {
    "zero": [0.0], "minus zero": [-0.0], "one": [1.0], "minus one": [-1.0], "inf": [np.inf],
    "minus inf": [-np.inf], "nan": [np.nan], "ties": [1.0, 0.0, -0.0, -1.0],
    "ends": [3.0, -3.0, 6.0, -6.0, 0.5, -0.5, 1.0, -1.0],
    "mixed": [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0, 0.5],
}  # fmt: skip
INFINITE = {"inf", "minus inf", "nan", "mixed"}
EVERY = set(POOLS)

_PARTS = "PyTorch's vectors and its last elements differ"
_ORDER = "infinities cancel or not by the order in which PyTorch adds and multiplies"
_LIBRARY = "LAPACK leaves open what it makes of such matrices; PyTorch may end the process"
_CHOICE = "PyTorch leaves open which of equal elements is chosen"

# The start of a row's name -> the corners that are not compared, and the reason.
DIFFERENT: dict[str, tuple[set[str], str]] = {
    **dict.fromkeys(
        ("relu6", "hardtanh", "elu", "selu", "celu", "hardswish", "hardshrink", "softshrink",
         "hardsigmoid", "i1e"), (INFINITE | {"ends"}, _PARTS)),
    **dict.fromkeys(
        ("layer_norm", "batch_norm", "instance_norm", "group_norm", "prod", "cumprod", "var_mean",
         "std_mean", "renorm", "trapezoid", "cumulative_trapezoid", "zeta", "scaled_dot_product",
         "nll_loss", "cdist", "log_ndtr", "fractional", "cross_entropy", "conv", "interpolate",
         "affine_grid", "fft", "stft", "istft"), (INFINITE, _ORDER)),
    **dict.fromkeys(
        ("linalg", "cholesky", "logdet", "slogdet", "det", "inverse", "lu", "qr", "svd", "pinverse",
         "lstsq", "solve", "triangular_solve", "matrix", "eig", "ormqr", "geqrf", "pca_lowrank",
         "householder", "lobpcg"), (EVERY, _LIBRARY)),
    **dict.fromkeys(
        ("median", "nanmedian", "kthvalue", "topk", "mode", "argsort", "embedding_bag.max",
         "cdist:inf", "max_unpool"), (EVERY, _CHOICE)),
    "logit": ({"minus zero", "ties", "mixed"}, _PARTS),
    "grid_sample": (INFINITE, "PyTorch reads beyond its memory at NaN"),
    "polar": (EVERY, "PyTorch's gradient has the wrong sign below zero, and is 0 at zero"),
    "cov": (EVERY, "PyTorch refuses weights whose sum is 0; they are data here"),
    "corrcoef": (EVERY, "variances of 0 are rounded otherwise"),
}  # fmt: skip


def corner(pool: list[float]) -> Callable[[np.ndarray], np.ndarray]:
    """Replaces an array's floats by those of a pool, at random."""
    rng = np.random.default_rng(3)

    def change(array: np.ndarray) -> np.ndarray:
        if array.dtype.kind != "f":
            return array
        return np.asarray(rng.choice(pool, array.shape)).astype(array.dtype)

    return change


def attempt(function: Callable[[], list[Any]]) -> Any:
    """Results as arrays, or the error's class."""
    try:
        return [None if x is None else value(x) for x in function()]
    except Exception as failure:
        return type(failure).__name__


def same(got: Any, want: Any, tolerance: float) -> bool:
    if isinstance(got, str) or isinstance(want, str):
        return isinstance(got, str) == isinstance(want, str)
    if [g is None for g in got] != [w is None for w in want]:
        return False
    pairs = [(g, w) for g, w in zip(got, want) if g is not None]
    return all(np.allclose(g, w, rtol=tolerance, atol=tolerance, equal_nan=True) for g, w in pairs)


def corners_of(row: OpInfo) -> list[str]:
    starts = [start for start in DIFFERENT if row.name.startswith(start)]
    skipped = set().union(*(DIFFERENT[start][0] for start in starts))
    return [name for name in POOLS if name not in skipped]


def check(row: OpInfo, sample: Sample, kind: Any, function: Callable[..., Any]) -> None:
    torch = pytest.importorskip("torch")

    def theirs_of(d: Any) -> Any:
        return getattr(torch, d.name)

    tolerance = 1e-6 if kind is float64 else 1e-3
    theirs, make = of_torch(row, torch), torch_tensor(torch)
    for name in corners_of(row):
        odd = replaced(sample, corner(POOLS[name]))
        want = attempt(lambda odd=odd: call(theirs, odd, make, theirs_of))
        got = attempt(lambda odd=odd: call(function, odd, tensor))
        assert same(got, want, tolerance), f"{row} at {name} {odd}: {got} != {want}"
        want = attempt(lambda odd=odd: Leaves(make).gradients(
            theirs, row, odd, torch.autograd.grad, theirs_of))
        got = attempt(lambda odd=odd: Leaves(tensor).gradients(function, row, odd, grad))
        assert same(got, want, tolerance), f"{row} at {name} {odd}: gradients {got} != {want}"


def smooth(row: OpInfo) -> bool:
    return row.differentiable and row.dtypes[0].is_floating_point and bool(corners_of(row))


@pytest.mark.filterwarnings("ignore")
@every(smooth, one_in=12)
def test_corners_agree_with_pytorch(row: OpInfo) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        for kind in (float64, float32):
            if kind in row.dtypes:
                for sample in samples(row, kind)[:3]:
                    check(row, sample, kind, ours(row))


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
@every(lambda row: smooth(row) and row.compiled)
def test_corners_of_captured_calls_agree_with_pytorch(row: OpInfo) -> None:
    def captured(*args: Any, **kwargs: Any) -> Any:
        return tracejit.script(ours(row), mode="graph")(*args, **kwargs)

    for sample in samples(row, float64)[:1]:
        check(row, sample, float64, captured)
