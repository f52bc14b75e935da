"""Rows of sort, argsort, topk, and of the elements at a place in the order."""

from __future__ import annotations

import numpy as np

import tracejit.core.ops.sorting  # noqa: F401 - hangs the methods on Tensor
from tests.opinfo import FLOATS, HALVES, INTEGERS, OpInfo, Sample, array

EXACT = {"ulp": 0, "exact": True, "dtypes": (*FLOATS, *HALVES, *INTEGERS)}


def on(*calls):
    return lambda rng, d: [
        Sample((array(rng, d, *shape, distinct=True),), keywords) for shape, keywords in calls
    ]


def equal_ones(rng, d):
    x = np.array([[2, 1, 2, 1, 3, 1], [0, 0, 1, 0, 1, 1]], d.numpy)
    return [Sample((x,), {"descending": down, "stable": True}) for down in (False, True)]


PLACES = on(
    ((3, 4), {}),
    ((3, 4), {"dim": 0}),
    ((2, 3, 2), {"dim": 1, "descending": True}),
    ((5,), {"descending": True}),
    ((), {}),
    ((0, 3), {"dim": 0}),
)
FIRST = on(
    ((3, 4), {"k": 2}),
    ((3, 4), {"k": 3, "dim": 0}),
    ((5,), {"k": 2, "largest": False}),
    ((5,), {"k": 0}),
    ((), {"k": 1}),
)
ORDERED = on(
    ((3, 4), {"dim": 1}),
    ((3, 5), {"dim": 0, "keepdim": True}),
    ((2, 3, 2), {"dim": -2}),
    ((4,), {}),
    ((3, 3), {}),
    ((), {"dim": 0}),
)
KTH = on(((3, 4), {"k": 2}), ((3, 4), {"k": 3, "dim": 0, "keepdim": True}), ((), {"k": 1}))

ROWS = [
    OpInfo("sort", PLACES, function=lambda x, **k: tuple(x.sort(**k)), specials=False, **EXACT),
    OpInfo(
        "sort.equal",
        equal_ones,
        function=lambda x, **k: tuple(x.sort(**k)),
        differentiable=False,
        strides=False,
        specials=False,
        **EXACT,
    ),
    OpInfo(
        "sort.nan",
        on(((3, 4), {}), ((5,), {"descending": True})),
        function=lambda x, **k: x.sort(**k).values,
        differentiable=False,
        ulp=0,
    ),
    OpInfo(
        "argsort",
        PLACES,
        function=lambda x, **k: x.argsort(**k),
        differentiable=False,
        specials=False,
        **EXACT,
    ),
    *(
        OpInfo(
            name,
            ORDERED,
            function=lambda x, name=name, **k: getattr(x, name)(**k),
            specials=False,
            **EXACT,
        )
        for name in ("median", "nanmedian")
    ),
    OpInfo("kthvalue", KTH, function=lambda x, *a, **k: tuple(x.kthvalue(*a, **k)), specials=False,
           **EXACT),
    OpInfo("topk", FIRST, function=lambda x, **k: tuple(x.topk(**k)), specials=False, **EXACT),
]
