"""Rows of the tensors made from nothing, or like another tensor."""

from __future__ import annotations

from tests.opinfo import ANY, COMPLEX, FLOATS, OpInfo, Sample, array
from tracejit.core.ops import creation, types

MADE = {"differentiable": False, "specials": False, "strides": False, "ulp": 1}


def calls(*samples):
    """The same calls for every dtype, given as `dtype=`."""
    return lambda rng, d: [Sample(args, {**keywords, "dtype": d}) for args, keywords in samples]


def undecided(*samples):
    return lambda rng, d: [Sample(args, dict(keywords)) for args, keywords in samples]


def like(*shapes):
    return lambda rng, d: [Sample((array(rng, d, *shape),)) for shape in shapes]


def made(name, function, samples, **options):
    return OpInfo(
        name, samples, function=function, torch=name.partition(".")[0], **{**MADE, **options}
    )


def method(name, *args, **keywords):
    return OpInfo(
        name,
        like((2, 3), ()),
        function=lambda x: getattr(x, name.partition(".")[0])(*args, **keywords),
        dtypes=ANY,
        **MADE,
    )


SIZES = calls(((2, 3), {}), (((2, 3),), {}), (([0, 2],), {}), (((),), {}))

ROWS = [
    made("zeros", creation.zeros, SIZES, dtypes=(*ANY, *COMPLEX)),
    made("ones", creation.ones, SIZES, dtypes=ANY),
    made("zeros.default", creation.zeros, undecided(((2,), {}))),
    made("full", creation.full, calls((((2, 3), 1), {})), dtypes=ANY),
    made("full.inferred", creation.full, undecided(*((((2,), v), {}) for v in (3, 2.5, True)))),
    made(
        "arange",
        creation.arange,
        calls(((5,), {}), ((1, 8), {}), ((1, 10, 3), {}), ((5, 0, -2), {}), ((0,), {})),
        dtypes=ANY[:-1],
    ),
    made(
        "arange.inferred",
        creation.arange,
        undecided(((4,), {}), ((0.5, 3), {}), ((0, 1, 0.1), {}), ((1, -1, -0.3), {})),
    ),
    made(
        "linspace",
        creation.linspace,
        calls(
            ((0, 1, 5), {}), ((-2.5, 3, 7), {}), ((1, 2, 1), {}), ((1, 2, 0), {}), ((3, -3, 4), {})
        ),
        dtypes=FLOATS,
        cancel=1,
    ),
    made(
        "eye", creation.eye, calls(((3,), {}), ((2, 4), {}), ((3, 1), {}), ((0,), {})), dtypes=ANY
    ),
    made("zeros_like", creation.zeros_like, like((2, 3), (), (0, 2)), dtypes=ANY),
    made("ones_like", creation.ones_like, like((2, 3), ()), dtypes=ANY),
    made(
        "full_like",
        creation.full_like,
        lambda rng, d: [Sample((array(rng, d, 2, 3), 2))],
        dtypes=ANY,
    ),
    made(
        "zeros_like.dtype",
        creation.zeros_like,
        lambda rng, d: [Sample((array(rng, d, 2),), {"dtype": types.int64})],
    ),
    method("new_zeros", 2, 2),
    method("new_ones", (2, 2)),
    method("new_full", (2,), 1),
    OpInfo(
        "empty.shape",
        lambda rng, d: [Sample(((2, 3),), {"dtype": d})],
        function=lambda *size, **k: creation.empty(*size, **k) * 0,
        torch=lambda *size, **k: __import__("torch").zeros(*size, **k),
        dtypes=FLOATS,
        **MADE,
    ),
]
