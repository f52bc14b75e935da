"""Rows of the pooling layers."""

import numpy as np

RNG = np.random.default_rng(3)


def images(*shape):
    return (RNG.normal(size=shape),)


CHANCES = np.random.default_rng(5).random((2, 3, 3))
LAYERS = [
    ("FractionalMaxPool2d", (2,), {"output_size": (3, 4), "_random_samples": CHANCES[..., :2]},
     images(2, 3, 6, 7)),
    ("FractionalMaxPool3d", ((2, 1, 2),), {"output_ratio": 0.5, "_random_samples": CHANCES},
     images(2, 3, 4, 6, 5)),
    ("MaxPool1d", (3, 2), {"padding": 1}, images(2, 3, 8)),
    ("MaxPool2d", (2,), {}, images(2, 3, 6, 7)),
    ("MaxPool2d", ((3, 2), (2, 1), (1, 0), (1, 2)), {"ceil_mode": True}, images(3, 6, 7)),
    ("MaxPool3d", (2,), {"stride": 1}, images(2, 2, 3, 4, 3)),
    ("AvgPool1d", (3,), {"ceil_mode": True}, images(2, 3, 8)),
    ("AvgPool2d", (3, 2, 1), {"count_include_pad": False}, images(2, 3, 6, 7)),
    ("AvgPool2d", ((3, 2),), {"divisor_override": 4}, images(3, 6, 7)),
    ("AvgPool3d", (2,), {}, images(2, 2, 3, 4, 5)),
    ("AdaptiveAvgPool1d", (3,), {}, images(2, 3, 8)),
    ("AdaptiveAvgPool2d", (1,), {}, images(2, 3, 6, 7)),
    ("AdaptiveAvgPool2d", ((4, None),), {}, images(3, 6, 7)),
    ("AdaptiveAvgPool3d", (2,), {}, images(2, 2, 3, 4, 5)),
    ("AdaptiveMaxPool1d", (3,), {}, images(2, 3, 8)),
    ("AdaptiveMaxPool2d", ((4, None),), {}, images(2, 3, 6, 7)),
    ("AdaptiveMaxPool3d", (2,), {}, images(2, 3, 4, 5)),
]
