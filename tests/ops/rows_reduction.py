"""Rows of the reductions and scans."""

from __future__ import annotations

import numpy as np

from tests.opinfo import (
    ANY,
    BOOL,
    FLOATS,
    HALVES,
    INTEGERS,
    NUMERIC,
    OpInfo,
    Sample,
    array,
)
from tracejit.core.ops import moments, types

SHAPES = ((3, 4), (2, 3, 4), (5,), (1, 3), ())


# No two elements equal in magnitude, none 0: norms and extremes are smooth there.
APART = {"low": -1.7, "high": 2.1, "distinct": True}


def along(*arguments, distinct=False, shapes=SHAPES, **keywords):
    """Samples: each shape, reduced as the `arguments` (dicts, None) say that fit it."""
    of = APART if distinct else {}

    def samples(rng, d):
        for shape in shapes:
            for given in arguments:
                if given is None or _fits(given, len(shape)):
                    yield Sample((array(rng, d, *shape, **of),), {**(given or {}), **keywords})

    return samples


def _fits(given, ndim):
    dim = given.get("dim")
    dims = dim if isinstance(dim, tuple) else () if dim is None else (dim,)
    return all(-max(ndim, 1) <= k < max(ndim, 1) for k in dims) and len(
        {k % max(ndim, 1) for k in dims}
    ) == len(dims)


EVERY = (None, {"dim": 0}, {"dim": -1, "keepdim": True})
SEVERAL = (*EVERY, {"dim": (0, 1)}, {"dim": (0, -1), "keepdim": True}, {"dim": 1})
ONE = ({"dim": 0}, {"dim": -1, "keepdim": True}, {"dim": 1})


def empties(*calls):
    """Samples on tensors without elements."""

    def samples(rng, d):
        for shape, keywords in calls:
            yield Sample((array(rng, d, *shape),), keywords)

    return samples


def both(first, second):
    return lambda rng, d: [*first(rng, d), *second(rng, d)]


NOTHING = empties(((0, 3), {}), ((0, 3), {"dim": 0}), ((0, 3), {"dim": 1}), ((0,), {}))
NOT_REDUCED = empties(((0, 3), {"dim": 1}), ((3, 0, 2), {"dim": 2, "keepdim": True}))


def with_zeros(rng, d):
    for zeros in (0, 1, 2):
        x = array(rng, d, 2, 4, low=0.5, high=2)
        x[0, :zeros] = 0
        yield from (Sample((x,), {"dim": 1}), Sample((x.copy(),), {}))


def pairs(rng, d):
    yield Sample((array(rng, d, 3, 4), array(rng, d, 4)))


def strided_bools(rng, d):
    for x in (np.zeros((2, 3)), np.ones((2, 3)), np.eye(3)[:2]):
        for given in EVERY:
            yield Sample((x.astype(d.numpy),), given or {})


def call(name, **keywords):
    return lambda x, *args, **given: getattr(x, name)(*args, **{**keywords, **given})


def row(name, function, samples, **options):
    return OpInfo(name, samples, function=function, **options)


CLOSE = {"ulp": 4, "cancel": 4}
EMPTY = {"differentiable": False}
WHOLE = {"dtypes": NUMERIC, "differentiable": False}

ROWS = [
    row("sum", call("sum"), along(*SEVERAL), dtypes=(*FLOATS, *HALVES), **CLOSE),
    row(
        "sum.integer",
        call("sum"),
        along(*SEVERAL),
        dtypes=(*INTEGERS, *BOOL),
        differentiable=False,
        exact=True,
    ),
    row("sum.dtype", call("sum"), along(*EVERY, dtype=types.float64), dtypes=ANY, **CLOSE),
    row("sum.empty", call("sum"), NOTHING, dtypes=ANY, **EMPTY),
    row("sum.axis", lambda x: x.sum(axis=0, keepdims=True), along(None, shapes=((3, 4),)), **CLOSE),
    row("mean", call("mean"), along(*SEVERAL), dtypes=(*FLOATS, *HALVES), **CLOSE),
    row("mean.empty", call("mean"), NOTHING, **EMPTY),
    row("mean.dtype", call("mean"), along(*EVERY, dtype=types.float64), dtypes=ANY, **CLOSE),
    row("prod", call("prod"), along(None, *ONE), dtypes=FLOATS, **CLOSE),
    row(
        "prod.integer",
        call("prod"),
        along(None, *ONE),
        dtypes=(*INTEGERS, *BOOL),
        differentiable=False,
        exact=True,
    ),
    row("prod.zeros", call("prod"), with_zeros, **CLOSE),
    row(
        "prod.empty", call("prod"), empties(((0, 3), {}), ((0, 3), {"dim": 0})), dtypes=ANY, **EMPTY
    ),
    row(
        "count_nonzero",
        call("count_nonzero"),
        along(None, {"dim": 0}, {"dim": (0, 1)}),
        dtypes=ANY,
        differentiable=False,
        exact=True,
    ),
    row("amax", call("amax"), along(*SEVERAL, distinct=True), dtypes=(*NUMERIC, *BOOL), exact=True),
    row("amin", call("amin"), along(*SEVERAL, distinct=True), dtypes=(*NUMERIC, *BOOL), exact=True),
    row("amax.empty", call("amax"), NOT_REDUCED, dtypes=NUMERIC, **EMPTY),
    row("argmax", call("argmax"), along(None, *ONE), **WHOLE, exact=True),
    row("argmin", call("argmin"), along(None, *ONE), **WHOLE, exact=True),
    row("argmax.empty", call("argmax"), NOT_REDUCED, **EMPTY),
    row("max.all", call("max"), along(None, distinct=True), dtypes=NUMERIC, exact=True),
    row("min.all", call("min"), along(None, distinct=True), dtypes=NUMERIC, exact=True),
    row("max.dim", call("max"), along(*ONE, distinct=True), dtypes=NUMERIC, exact=True),
    row("min.dim", call("min"), along(*ONE, distinct=True), dtypes=NUMERIC, exact=True),
    row("max.dim.empty", call("max"), NOT_REDUCED, **EMPTY),
    row("max.other", call("max"), pairs, dtypes=NUMERIC, exact=True),
    row("min.other", call("min"), pairs, dtypes=NUMERIC, exact=True),
    row(
        "any",
        call("any"),
        both(strided_bools, NOTHING),
        dtypes=ANY,
        differentiable=False,
        exact=True,
    ),
    row(
        "all",
        call("all"),
        both(strided_bools, NOTHING),
        dtypes=ANY,
        differentiable=False,
        exact=True,
    ),
    row(
        "var",
        call("var"),
        along({"dim": 0}, {"dim": (0, 1)}, {}, shapes=((3, 4), (2, 3, 4))),
        **CLOSE,
    ),
    row(
        "var.half",
        call("var"),
        along({"dim": 0}, {}, shapes=((3, 4),)),
        dtypes=HALVES,
        differentiable=False,
        specials=False,
        **CLOSE,
    ),
    row("var.correction", call("var", correction=0), along(*SEVERAL), **CLOSE),
    row(
        "var.overcorrected",
        call("var", correction=20),
        along({"dim": 0}, shapes=((3, 4),)),
        **EMPTY,
    ),
    row("var.biased", lambda x: x.var(False), along(None), **CLOSE),
    row(
        "std",
        call("std"),
        along({"dim": 0}, {"dim": (0, 1)}, {}, shapes=((3, 4), (2, 3, 4))),
        **CLOSE,
    ),
    row(
        "std.constant",
        call("std"),
        lambda rng, d: [Sample((np.full((3, 2), 2.0, d.numpy), 0))],
        second_order=False,
        **CLOSE,
    ),
    row(
        "var_mean",
        moments.var_mean,
        along({"dim": 0}, {}, shapes=((3, 4),)),
        torch="var_mean",
        specials=False,
        **CLOSE,
    ),
    row(
        "std_mean",
        moments.std_mean,
        along({"dim": 0}, {}, shapes=((3, 4),)),
        torch="std_mean",
        specials=False,
        **CLOSE,
    ),
    row("norm", call("norm"), along(*SEVERAL, distinct=True), **CLOSE),
    row(
        "norm.zero",
        call("norm"),
        lambda rng, d: [Sample((np.zeros((2, 3), d.numpy),), {"dim": 1})],
        differentiable=False,
    ),
    *(
        row(
            f"norm.{p}",
            call("norm", p=p),
            along(*EVERY, distinct=True),
            differentiable=p != 0,
            **CLOSE,
        )
        for p in (1, 3, 0, float("inf"), -float("inf"), 2.5)
    ),
    row(
        "cumsum",
        call("cumsum"),
        along({"dim": 0}, {"dim": -1}, {"dim": 1}),
        dtypes=(*FLOATS, *HALVES),
        **CLOSE,
    ),
    row(
        "cumsum.integer",
        call("cumsum"),
        along({"dim": 0}),
        dtypes=(*INTEGERS, *BOOL),
        differentiable=False,
    ),
    row("cumsum.empty", call("cumsum", dim=0), empties(((0, 3), {})), **EMPTY),
    row("cumprod", call("cumprod"), along({"dim": 0}, {"dim": -1}), **CLOSE),
    row(
        "cumprod.zeros",
        call("cumprod", dim=1),
        lambda rng, d: [Sample(s.args) for s in with_zeros(rng, d)],
        **CLOSE,
    ),
]
