"""Rows of the products."""

from collections.abc import Callable, Iterable

import numpy as np

from tests.opinfo import FLOATS, HALVES, OpInfo, Sample, array
from tests.ops.rows_composite import functional
from tracejit.core.ops import types
from tracejit.core.ops.types import dtype

DTYPES = (*FLOATS, *HALVES, types.int64)
MATMUL = (
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (4, 3, 2)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)), ((0, 3), (3, 4)), ((2, 0), (0, 4)), ((0, 2, 3), (0, 3, 4)), ((1, 1), (1, 1)),
    ((1, 2, 3), (4, 3, 2)),
)  # fmt: skip


def shaped(*calls: tuple, **keywords: float) -> Callable:
    """One sample per tuple of operand shapes."""
    def samples(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
        for shapes in calls:
            yield Sample(tuple(None if s is None else array(rng, d, *s) for s in shapes), keywords)

    return samples


def row(name: str, samples: Callable, **keywords: object) -> OpInfo:
    return OpInfo(name, samples, cancel=4, dtypes=DTYPES, specials=False, **keywords)


ROWS = [
    row("matmul", shaped(*MATMUL)),
    row("mm", shaped(((2, 3), (3, 4)))),
    row("bmm", shaped(((5, 2, 3), (5, 3, 4)))),
    row("mv", shaped(((2, 3), (3,)))),
    row("dot", shaped(((4,), (4,)), ((0,), (0,)))),
    row("inner", shaped(((4,), (4,)), ((2, 3), (4, 3)), ((2, 1, 3), (3,)), ((), (3,)))),
    row("outer", shaped(((4,), (3,)))),
    row("addmm", shaped(((4,), (2, 3), (3, 4)), ((2, 4), (2, 3), (3, 4)))),
    row("addmm.scaled", shaped(((4,), (2, 3), (3, 4)), beta=2, alpha=3),
        function=lambda a, b, c, beta, alpha: a.addmm(b, c, beta=beta, alpha=alpha)),
    row("baddbmm", shaped(((2, 4), (5, 2, 3), (5, 3, 4)))),
    row("linear", shaped(((2, 3), (4, 3), (4,)), ((5, 2, 3), (4, 3), (4,)), ((3,), (4, 3), (4,)),
                         ((0, 3), (4, 3), (4,)), ((2, 3), (4, 3), None)),
        function=functional("linear")),
]
