"""Rows of the convolution layers."""

import numpy as np

RNG = np.random.default_rng(2)


def images(*shape):
    return (RNG.normal(size=shape),)


LAYERS = [
    ("Conv1d", (3, 4, 3), {}, images(2, 3, 7)),
    ("Conv1d", (3, 4, 2), {"padding": "same"}, images(3, 7)),
    ("Conv1d", (2, 2, 3), {"padding": 2, "padding_mode": "circular"}, images(2, 2, 7)),
    ("Conv2d", (3, 4, 3), {"stride": 2, "padding": (1, 0), "bias": False}, images(2, 3, 6, 7)),
    ("Conv2d", (4, 6, (3, 2)), {"dilation": (1, 2), "groups": 2}, images(2, 4, 5, 6)),
    ("Conv2d", (2, 3, 3), {"padding": 1, "padding_mode": "reflect"}, images(2, 2, 5, 6)),
    ("Conv2d", (2, 3, 3), {"padding": "same", "padding_mode": "replicate"}, images(2, 5, 6)),
    ("Conv3d", (1, 2, (1, 2, 3)), {"padding": "valid"}, images(2, 1, 3, 4, 5)),
    ("ConvTranspose1d", (3, 4, 3), {"stride": 2}, images(2, 3, 4)),
    ("ConvTranspose2d", (4, 6, 3), {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2},
     images(2, 4, 3, 4)),
    ("ConvTranspose3d", (2, 3, 2), {"bias": False}, images(2, 2, 2, 3, 2)),
]  # fmt: skip
