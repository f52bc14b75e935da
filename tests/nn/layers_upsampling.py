"""Rows of the layers that give images another size."""

import numpy as np

RNG = np.random.default_rng(5)


def images(*shape):
    return (RNG.normal(size=shape),)


LAYERS = [
    ("Upsample", (), {"scale_factor": 2}, images(2, 3, 4)),
    ("Upsample", ((3, 7),), {"mode": "bilinear"}, images(2, 3, 4, 5)),
    ("Upsample", (), {"scale_factor": (1.5, 0.6), "mode": "bicubic", "align_corners": True},
     images(2, 3, 4, 5)),
    ("Upsample", (), {"scale_factor": 1.3, "mode": "trilinear", "recompute_scale_factor": True},
     images(2, 1, 4, 3, 5)),
    ("UpsamplingNearest2d", (5,), {}, images(2, 3, 4, 2)),
    ("UpsamplingBilinear2d", (), {"scale_factor": 2}, images(2, 3, 4, 2)),
]  # fmt: skip
