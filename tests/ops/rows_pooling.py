"""Rows of the poolings: windows that overlap, leave some out, or reach into the padding."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.opinfo import FLOATS, HALVES, OpInfo, Sample, array
from tests.ops.rows_composite import functional
from tracejit.core.ops import types
from tracejit.core.ops.types import dtype

IMAGES = (2, 2, 5, 6)
VOLUMES = (1, 2, 4, 3, 5)


def of(*shapes: tuple, **options: Any) -> Callable:
    """One sample per shape; no two elements are equal, so that there is a gradient."""
    def samples(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
        for shape in shapes:
            yield Sample((array(rng, d, *shape, distinct=True),), options)

    return samples


def largest(name: str, *shapes: tuple, **options: Any) -> OpInfo:
    first = name.partition(".")[0]
    return OpInfo(name, of(*shapes, **options), function=functional(first), strides=False,
                  dtypes=(*FLOATS, *HALVES, *(() if "1d" in name or "adaptive" in name
                                              else (types.int64, types.uint8))))  # fmt: skip


def mean(name: str, *shapes: tuple, dtypes: tuple = (*FLOATS, *HALVES), **options: Any) -> OpInfo:
    return OpInfo(name, of(*shapes, **options), function=functional(name.partition(".")[0]),
                  dtypes=dtypes, ulp=4, cancel=4, specials=False)  # fmt: skip


ROWS = [
    largest("max_pool1d", (2, 3, 7), (3, 4), (0, 2, 5), kernel_size=3, stride=1),
    largest("max_pool1d.dilated", (2, 3, 7), kernel_size=2, stride=2, padding=1, dilation=3,
            return_indices=True),
    largest("max_pool2d", IMAGES, (2, 5, 4), (0, 2, 3, 4), (1, 1, 2, 2), kernel_size=2),
    largest("max_pool2d.overlapping", IMAGES, kernel_size=3, stride=(2, 1), padding=(1, 0),
            return_indices=True),
    largest("max_pool2d.dilated", IMAGES, kernel_size=(2, 3), stride=2, dilation=(2, 1),
            ceil_mode=True, return_indices=True),
    largest("max_pool3d", VOLUMES, (2, 3, 3, 4), kernel_size=(2, 1, 3), stride=1, padding=(1, 0, 1),
            return_indices=True),
    largest("adaptive_max_pool1d", (2, 3, 7), (3, 4), (0, 2, 3), output_size=3),
    largest("adaptive_max_pool2d", IMAGES, (2, 5, 4), output_size=(3, None), return_indices=True),
    largest("adaptive_max_pool3d", VOLUMES, output_size=2, return_indices=True),
    mean("avg_pool1d", (2, 3, 7), (3, 4), (0, 2, 5), kernel_size=3, stride=1, padding=1),
    mean("avg_pool2d", IMAGES, (2, 5, 4), (0, 2, 3, 4), (1, 1, 2, 2), kernel_size=2,
         dtypes=(*FLOATS, *HALVES, types.int64)),
    mean("avg_pool2d.overlapping", IMAGES, kernel_size=3, stride=(2, 1), padding=(1, 0),
         ceil_mode=True, count_include_pad=False),
    mean("avg_pool2d.padded", IMAGES, kernel_size=(3, 2), stride=(3, 2), padding=1, ceil_mode=True),
    mean("avg_pool2d.divisor", IMAGES, kernel_size=3, stride=2, padding=1, ceil_mode=True,
         divisor_override=5, dtypes=(*FLOATS, *HALVES, types.int64)),
    mean("avg_pool3d", VOLUMES, (2, 3, 3, 4), kernel_size=(2, 1, 3), stride=1, padding=(1, 0, 1),
         dtypes=FLOATS),
    mean("adaptive_avg_pool1d", (2, 3, 7), (3, 4), (0, 2, 3), output_size=3),
    mean("adaptive_avg_pool1d.longer", (2, 3, 4), output_size=7),
    mean("adaptive_avg_pool2d", IMAGES, (2, 5, 4), output_size=(3, None)),
    mean("adaptive_avg_pool2d.one", IMAGES, (2, 5, 4), output_size=1),
    mean("adaptive_avg_pool3d", VOLUMES, output_size=2),
]  # fmt: skip
