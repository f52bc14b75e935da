"""Rows of unique, unique_consecutive, bincount, histc, and masked reads and writes."""

from __future__ import annotations

import numpy as np

from tests.opinfo import ANY, FLOATS, INTEGERS, OpInfo, Sample, array

FEW = {"differentiable": False, "ulp": 0, "exact": True}


def few(rng, d, *shape):
    """Values that repeat."""
    return rng.integers(0, 2 if d.name == "bool" else 4, shape).astype(d.numpy)


def on(*calls):
    return lambda rng, d: [Sample((few(rng, d, *shape),), options) for shape, options in calls]


BOTH = {"return_inverse": True, "return_counts": True}
COUNTED = on(((9,), {}), ((3, 4), BOTH), ((6,), {"return_counts": True}), ((), BOTH), ((0,), BOTH))
SLICES = on(((5, 2), {"dim": 0, **BOTH}), ((2, 6), {"dim": 1, **BOTH}), ((3, 2, 2), {"dim": -1}))


def weights(rng, d):
    return [Sample((rng.integers(0, 5, 7), array(rng, d, 7)), {"minlength": k}) for k in (0, 9)]


def masked(*calls):
    """Samples (x, mask, value): arrays of these shapes."""
    return lambda rng, d: [
        Sample((array(rng, d, *x), rng.random(mask) < 0.5, array(rng, d, *value)))
        for x, mask, value in calls
    ]


def write(x, mask, value):
    x = x.clone()
    x[mask] = value
    return x


def write_second(x, mask, value):
    x = x.clone()
    x[:, mask] = value
    return x


def add_to_selected(x, mask, value):
    x = x.clone()
    x[mask] += 2
    x[mask] -= value
    x[mask] *= 3
    return x


ROWS = [
    OpInfo("unique", COUNTED, function=lambda x, **k: x.unique(**k), dtypes=ANY, **FEW),
    OpInfo("unique.dim", SLICES, function=lambda x, **k: x.unique(**k), dtypes=ANY,
           **{**FEW, "specials": False}),
    OpInfo("unique_consecutive", COUNTED, function=lambda x, **k: x.unique_consecutive(**k),
           dtypes=ANY, **FEW),
    OpInfo("unique_consecutive.dim", SLICES, function=lambda x, **k: x.unique_consecutive(**k),
           dtypes=ANY, **FEW),
    OpInfo("bincount", on(((9,), {}), ((0,), {}), ((4,), {"minlength": 9})), dtypes=INTEGERS,
           function=lambda x, **k: x.bincount(**k), specials=False, **FEW),
    OpInfo("bincount.weights", weights, function=lambda x, w, **k: x.bincount(w, **k),
           dtypes=FLOATS, specials=False, differentiable=False, ulp=4, exact=True),
    OpInfo("histc", on(((9,), {"bins": 3, "min": 0, "max": 3}), ((4, 5), {"bins": 7}),
                       ((6,), {"bins": 4, "min": 1, "max": 2}), ((0,), {"bins": 2})),
           function=lambda x, **k: x.histc(**k), dtypes=FLOATS, specials=False, **FEW),
    OpInfo("repeat_interleave.positions", lambda rng, d: [Sample((np.array([2, 0, 1], d.numpy),))],
           dtypes=INTEGERS[:2], specials=False, strides=False, **FEW),
    OpInfo("setitem.mask.broadcast", masked(((3, 4), (3,), (4,)), ((3, 4), (3,), (1, 4)),
           ((3, 4), (3, 4), (1,)), ((3, 4), (3, 4), ()), ((3, 4), (3,), (1,)),
           ((0, 4), (0,), (4,))), function=write, dtypes=ANY, ulp=0, exact=True),
    OpInfo("setitem.mask.second.broadcast", masked(((3, 4), (4,), (3, 1)), ((3, 4), (4,), ()),
           ((2, 3, 4), (3,), (2, 1, 4)), ((2, 3, 4), (3, 4), (2, 1)), ((2, 3, 4), (3,), (4,))),
           function=write_second, dtypes=ANY, ulp=0, exact=True),
    OpInfo("setitem.mask.update", masked(((3, 4), (3, 4), ()), ((3, 4), (3,), ())),
           function=add_to_selected, dtypes=FLOATS, ulp=0, cancel=2),
]
