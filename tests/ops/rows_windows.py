"""Rows of what lays windows side by side, moves pixels, pools by norms, and of distances."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.opinfo import FLOATS, HALVES, OpInfo, Sample, array
from tests.ops.rows_composite import functional
from tracejit.core.ops import types
from tracejit.core.ops.types import dtype

IMAGES = (2, 2, 5, 6)
ALL = (*FLOATS, *HALVES, types.int64, types.bool_)


def of(*shapes: tuple, low: float = -2, **options: Any) -> Callable:
    """One sample for each shape, or tuple of shapes."""
    def samples(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
        for shape in shapes:
            each = shape if shape and isinstance(shape[0], tuple) else (shape,)
            yield Sample(tuple(array(rng, d, *s, low=low) for s in each), options)

    return samples


def row(name: str, *shapes: tuple, function: Any = None, dtypes: tuple = (*FLOATS, *HALVES),
        low: float = -2, rounds: bool = False, strides: bool = True, **options: Any) -> OpInfo:
    return OpInfo(name, of(*shapes, low=low, **options), dtypes=dtypes, strides=strides,
                  function=function or functional(name.partition(".")[0]),
                  **({"ulp": 8, "cancel": 8, "specials": False} if rounds else {}))  # fmt: skip


ROWS = [
    row("unfold", IMAGES, (2, 5, 4), (0, 2, 3, 4), kernel_size=(2, 3)),
    row("unfold.padded", IMAGES, kernel_size=2, dilation=(2, 3), padding=(1, 2), stride=(2, 1)),
    row("fold", (2, 12, 15), (12, 15), output_size=(4, 5), kernel_size=(2, 3), padding=(0, 1),
        stride=1, rounds=True),
    row("fold.padded", (2, 8, 25), output_size=(5, 7), kernel_size=2, dilation=(2, 1),
        padding=(1, 2), stride=(1, 2), rounds=True),
    row("unfold.view", (3, 7), (7,), (7, 2, 3), function=lambda x: x.unfold(0, 3, 2), dtypes=ALL),
    row("unfold.last", (2, 5), (2, 3, 4), function=lambda x: x.unfold(-1, 2, 3), dtypes=ALL),
    row("unfold.scalar", (), function=lambda x: x.unfold(0, 1, 1), dtypes=ALL, strides=False),
    row("pixel_shuffle", (2, 8, 3, 2), (4, 2, 3), (1, 2, 4, 1, 2), upscale_factor=2, dtypes=ALL),
    row("pixel_unshuffle", (2, 3, 4, 2), (3, 6, 4), downscale_factor=2, dtypes=ALL),
    row("channel_shuffle", (2, 6, 3, 2), (0, 3, 2), groups=3, dtypes=ALL),
    row("lp_pool1d", (2, 3, 7), (3, 4), norm_type=2.0, kernel_size=3, stride=2, low=0.1,
        rounds=True, dtypes=FLOATS),
    row("lp_pool2d", IMAGES, (2, 4, 5), norm_type=3.0, kernel_size=(2, 3), ceil_mode=True, low=0.1,
        rounds=True, dtypes=FLOATS),
    row("lp_pool3d", (1, 2, 3, 4, 3), norm_type=1.5, kernel_size=2, stride=1, low=0.1, rounds=True,
        dtypes=FLOATS),
    row("cosine_similarity", ((3, 4), (3, 4)), ((3, 4), (1, 4)), ((2, 3, 4), (3, 1)), rounds=True),
    row("cosine_similarity.dim", ((3, 4), (3, 4)), ((3, 4), (3, 1)), dim=0, eps=0.1, rounds=True),
    row("pairwise_distance", ((3, 4), (3, 4)), ((3, 4), (4,)), ((4,), (4,)), rounds=True),
    row("pairwise_distance.p", ((3, 4), (3, 4)), p=3.0, keepdim=True, eps=0.1, rounds=True),
]  # fmt: skip
