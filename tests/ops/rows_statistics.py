"""Rows of what is searched, counted, ordered and combined along dimensions: what PyTorch's samples
leave out, second gradients and layouts among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.opinfo import FLOATS, INTEGERS, OpInfo, Sample, array
from tests.ops.rows_linalg import shaped
from tests.ops.rows_pointwise import binary, kinks, unary
from tracejit.core.ops.types import dtype

EXACT = {"ulp": 0, "exact": True}


def distinct(*calls: tuple) -> Callable:
    """Samples (array of a shape without equal elements, *arguments)."""
    return lambda rng, d: [
        Sample((array(rng, d, *shape, distinct=True), *rest)) for shape, *rest in calls
    ]


def scattered(reduce: str, include_self: bool) -> Callable:
    def samples(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
        index = np.array([[0, 2, 0], [0, 2, 1]])
        yield Sample((array(rng, d, 3, 4, distinct=True), 0, index,
                      array(rng, d, 2, 3, low=3, high=5, distinct=True), reduce),
                     {"include_self": include_self})  # fmt: skip

    return samples


def sequences(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    ordered = np.sort(array(rng, d, 2, 5), -1)
    values = array(rng, d, 2, 3)
    for right in (False, True):
        yield Sample((ordered, values), {"right": right})
        yield Sample((ordered[0], values), {"right": right, "out_int32": True})
    yield Sample((ordered[:, ::-1].copy(), values), {"sorter": np.argsort(ordered[:, ::-1])})


def weighted(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    x = array(rng, d, 3, 5)
    yield Sample((x,))
    yield Sample((x,), {"correction": 0})
    yield Sample((x,), {"fweights": np.arange(1, 6), "aweights": array(rng, d, 5, low=0.5)})


def row(name: str, samples: Callable, **keywords: Any) -> OpInfo:
    return OpInfo(name, samples, **{"specials": False, "cancel": 16, **keywords})


ROWS = [
    row("cummax", distinct(((3, 4), 0), ((4,), 0), ((), 0)),
        function=lambda x, d: tuple(x.cummax(d)), dtypes=(*FLOATS, *INTEGERS), **EXACT),
    row("cummin", distinct(((2, 3, 2), 1)), function=lambda x, d: tuple(x.cummin(d)), **EXACT),
    row("logcumsumexp", shaped(((3, 4),)), function=lambda x: x.logcumsumexp(1), ulp=16),
    row("mode", lambda rng, d: [Sample((rng.integers(0, 3, (4, 5)).astype(d.numpy), k))
                                for k in (0, 1)], function=lambda x, k: tuple(x.mode(k)),
        second_order=False, differentiable=False, dtypes=(*FLOATS, *INTEGERS), **EXACT),
    row("quantile", distinct(((3, 5), 0.3), ((4,), 0.5), ((3, 4), np.array([0.1, 0.9]), 1)),
        dtypes=FLOATS[1:], ulp=8, constant=(1,)),
    row("nanquantile", lambda rng, d: [Sample((np.array([[1, np.nan, 3, 2]], d.numpy), 0.4, 1))],
        differentiable=False, ulp=8),
    row("aminmax", distinct(((3, 4),)), function=lambda x: tuple(x.aminmax(dim=1)), **EXACT),
    row("renorm", shaped(((3, 2, 4),)), function=lambda x: x.renorm(2, 0, 1.0), ulp=8),
    row("trapezoid", lambda rng, d: [Sample((array(rng, d, 3, 4), array(rng, d, 4))),
                                     Sample((array(rng, d, 3, 4),), {"dx": 0.5, "dim": 0})]),
    row("diff", shaped(((3, 5),), ((0, 2),), n=2)),
    row("cov", weighted, ulp=8),
    row("searchsorted", sequences, differentiable=False, strides=False, **EXACT),
    row("histogram", lambda rng, d: [Sample((array(rng, d, 9), 4), {"weight": array(rng, d, 9)})],
        function=lambda x, bins, **k: tuple(x.histogram(bins, **k)), differentiable=False, ulp=8),
    *(row(f"scatter_reduce.{reduce}.{own}", scattered(reduce, own), ulp=8)
      for reduce, own in (("prod", True), ("mean", False), ("amax", True), ("amin", False))),
    row("diag_embed", shaped(((2, 3),)), function=lambda x: x.diag_embed(1, 0, 2), **EXACT),
    row("copysign", binary(0.5, 2), ulp=0),
    row("fmax", kinks, specials=True, ulp=0),
    row("fmin", kinks, specials=True, ulp=0),
    row("frexp", unary(), function=lambda x: tuple(x.frexp()), ulp=0),
    *(row(name, unary(1.1, 3) if name == "acosh" else unary(-0.9, 0.9), ulp=8, specials=True,
          compiled=False) for name in ("asinh", "acosh", "atanh")),
]  # fmt: skip
