"""Rows of short-time Fourier transforms, of fractional pooling, and of distances of all pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.opinfo import FLOATS, OpInfo, Sample, array
from tests.ops.rows_composite import functional
from tracejit.core.ops import types
from tracejit.core.ops.types import dtype


def _signals(*shapes: tuple, window: int = 0, **options: Any) -> Callable[..., Any]:
    def samples(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
        for shape in shapes:
            given = {"window": array(rng, d, window, low=0.5)} if window else {}
            yield Sample((array(rng, d, *shape), 8), {**options, **given})

    return samples


def _spectra(*shapes: tuple, window: int = 0, **options: Any) -> Callable[..., Any]:
    def samples(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
        real = types.float32 if d is types.complex64 else types.float64
        for shape in shapes:
            given = {"window": array(rng, real, window, low=0.5)} if window else {}
            yield Sample((array(rng, d, *shape), 8), {**options, **given})

    return samples


def _complex_windows(*shapes: tuple, real: bool = False, **options: Any) -> Callable[..., Any]:
    def samples(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
        kind = d.to_real() if real else d
        for shape in shapes:
            window = array(rng, d, 8, low=0.5)
            yield Sample((array(rng, kind, *shape), 8), {"window": window, **options})

    return samples


def _pooled(n: int, **options: Any) -> Callable[..., Any]:
    def samples(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
        shape = (2, 3, 6, 7, 5)[:n + 2]
        image, chance = array(rng, d, *shape, distinct=True), array(rng, d, 2, 3, n, low=0, high=1)
        yield Sample((image,), {**options, "_random_samples": chance})

    return samples


def _rows(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    for shape in ((1, 2), (0, 3)):  # PyTorch's gradient ends the process
        yield Sample((array(rng, d, *shape),))


def _strided(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    yield Sample((array(rng, d, 3, 4), array(rng, d, 2, 3), (2, 3), (4, 1), 1))


def _written(x: Any, src: Any, *view: Any) -> Any:
    """PyTorch's values; its own function has the gradient of another one."""
    whole = x.clone()
    whole.as_strided(*view).copy_(src)
    return whole


def row(name: str, samples: Callable[..., Any], **options: Any) -> OpInfo:
    kept = {"specials": False, "strides": False, "ulp": 8, "cancel": 32, **options}
    return OpInfo(name, samples, **kept)


_COMPLEX = (types.complex64, types.complex128)
_POOL = {"constant": ("_random_samples",), "dtypes": FLOATS}
ROWS = [
    row("stft", _signals((20,), (2, 11), window=8, return_complex=True)),
    row("stft.short_window", _signals((2, 20), window=5, win_length=5, hop_length=3, center=False,
                                      normalized=True, return_complex=True)),
    row("stft.pairs", _signals((20,), window=8, pad_mode="constant", onesided=False,
                               return_complex=False)),
    row("istft", _spectra((5, 4), (2, 5, 3), window=8), dtypes=_COMPLEX),
    row("istft.length", _spectra((8, 4), window=6, win_length=6, hop_length=2, onesided=False,
                                 normalized=True, length=9), dtypes=_COMPLEX),
    row("stft.complex_window", _complex_windows((20,), (2, 11)), dtypes=_COMPLEX),
    row("stft.complex_window_of_real", _complex_windows((20,), real=True, return_complex=True),
        dtypes=_COMPLEX),
    row("istft.complex_window", _complex_windows((8, 5), (2, 8, 3), return_complex=True,
                                                 onesided=False), dtypes=_COMPLEX),
    row("pdist", lambda rng, d: [Sample((array(rng, d, 4, 3),))], function=functional("pdist")),
    row("pdist.few", _rows, function=functional("pdist"), differentiable=False),
    row("pdist.p", lambda rng, d: [Sample((array(rng, d, 4, 2), 3.0))],
        function=functional("pdist")),
    row("as_strided_scatter", _strided, torch=_written),
    row("fractional_max_pool2d", _pooled(2, kernel_size=2, output_size=(3, 4)),
        function=functional("fractional_max_pool2d"), **_POOL),
    row("fractional_max_pool2d.ratio",
        _pooled(2, kernel_size=(2, 3), output_ratio=(0.5, 0.4), return_indices=True),
        function=functional("fractional_max_pool2d"), **_POOL),
    row("fractional_max_pool3d", _pooled(3, kernel_size=2, output_size=(3, 1, 2)),
        function=functional("fractional_max_pool3d"), **_POOL),
]  # fmt: skip
