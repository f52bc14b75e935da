"""Rows of reading images between their elements, and of the places to read."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.opinfo import FLOATS, OpInfo, Sample, array
from tests.ops.rows_composite import functional
from tracejit.core.ops.types import dtype

IMAGES, GRID = (2, 2, 3, 4), (2, 3, 1, 2)
VOLUMES, GRID3 = (1, 2, 3, 4, 2), (1, 2, 2, 3, 3)


def _sampled(*pairs: tuple, **options: Any) -> Callable:
    """Places up to one image outside, none where there is no derivative."""
    def samples(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
        for shape, grid in pairs:
            for padding in ("zeros", "border", "reflection"):
                for align in (True, False):
                    yield Sample(
                        (array(rng, d, *shape), array(rng, d, *grid, low=-1.9, high=1.9)),
                        {"padding_mode": padding, "align_corners": align, **options})

    return samples


def row(name: str, samples: Callable, **keywords: Any) -> OpInfo:
    return OpInfo(name, samples, function=functional(name.partition(".")[0]), dtypes=FLOATS,
                  ulp=64, cancel=64, specials=False, **keywords)  # fmt: skip


def _matrices(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    for size in ((2, 1, 3, 4), (2, 1, 1, 2)):
        yield Sample((array(rng, d, 2, 2, 3), size), {"align_corners": True})
        yield Sample((array(rng, d, 2, 2, 3), size), {"align_corners": False})
    yield Sample((array(rng, d, 1, 3, 4), (1, 2, 2, 3, 4)), {"align_corners": False})


ROWS = [
    row("grid_sample", _sampled((IMAGES, GRID), ((0, 3, 4, 5), (0, 3, 2, 2)))),
    row("grid_sample.volume", _sampled((VOLUMES, GRID3)), second_order=False),
    row("grid_sample.nearest", _sampled((IMAGES, GRID), (VOLUMES, GRID3), mode="nearest")),
    row("grid_sample.bicubic", _sampled((IMAGES, GRID), mode="bicubic"), second_order=False),
    row("affine_grid", _matrices),
]
