"""Rows of interpolation: every mode, larger and smaller, by sizes and by factors."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.opinfo import FLOATS, HALVES, OpInfo, Sample, array
from tests.ops.rows_composite import functional
from tracejit.core.ops import types
from tracejit.core.ops.types import dtype

LINES, IMAGES, VOLUMES = (2, 2, 5), (2, 2, 5, 6), (1, 2, 3, 4, 3)


def of(shape: tuple, calls: tuple) -> Callable:
    def samples(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
        for options in calls:
            yield Sample((array(rng, d, *shape),), options)
        yield Sample((array(rng, d, 0, *shape[1:]),), calls[0])

    return samples


def row(name: str, shape: tuple, *calls: dict[str, Any], dtypes: tuple = (*FLOATS, *HALVES),
        **common: Any) -> OpInfo:
    return OpInfo(f"interpolate.{name}", of(shape, tuple({**c, **common} for c in calls)),
                  function=functional("interpolate"), dtypes=dtypes, ulp=8, cancel=16,
                  specials=False)  # fmt: skip


LARGER, SMALLER, FACTOR = {"size": 7}, {"size": 3}, {"scale_factor": 1.7}
RECOMPUTED = {**FACTOR, "recompute_scale_factor": True}
ALIGNED = {"size": 8, "align_corners": True}

ROWS = [
    *(row(f"{mode}{len(shape) - 2}", shape, LARGER, SMALLER, FACTOR, RECOMPUTED, mode=mode,
          dtypes=(*FLOATS, *HALVES, types.uint8))
      for mode in ("nearest", "nearest-exact") for shape in (LINES, IMAGES, VOLUMES)),
    *(row(mode, shape, LARGER, SMALLER, FACTOR, RECOMPUTED, ALIGNED, mode=mode)
      for mode, shape in (("linear", LINES), ("bilinear", IMAGES), ("bicubic", IMAGES),
                          ("trilinear", VOLUMES))),
    *(row(f"{mode}.smooth", IMAGES, LARGER, SMALLER, FACTOR, ALIGNED, mode=mode, antialias=True,
          dtypes=FLOATS)
      for mode in ("bilinear", "bicubic")),
    row("area", IMAGES, LARGER, SMALLER, mode="area"),
]  # fmt: skip
