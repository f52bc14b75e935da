"""Rows of the layers that lay windows side by side, move pixels, and measure distances."""

import numpy as np

RNG = np.random.default_rng(7)


def numbers(*shapes):
    return tuple(RNG.normal(size=shape) for shape in shapes)


LAYERS = [
    ("Unfold", ((2, 3),), {"padding": (1, 0)}, numbers((2, 3, 4, 5))),
    ("Unfold", (2, 2, 1, 2), {}, numbers((3, 4, 5))),
    ("Fold", ((4, 5), (2, 3)), {"padding": (1, 0)}, numbers((2, 12, 15))),
    ("PixelShuffle", (2,), {}, numbers((2, 8, 3, 2))),
    ("PixelUnshuffle", (2,), {}, numbers((2, 3, 4, 2))),
    ("ChannelShuffle", (3,), {}, numbers((2, 6, 3))),
    ("LPPool1d", (2, 3), {}, numbers((2, 3, 7))),
    ("LPPool2d", (4, (2, 3), 2), {"ceil_mode": True}, numbers((2, 3, 6, 5))),
    ("LPPool3d", (2, 2), {}, numbers((2, 3, 4, 2, 3))),
    ("MaxUnpool1d", (2,), {}, (*numbers((2, 3, 3)), np.tile([1, 2, 5], (2, 3, 1)))),
    ("MaxUnpool2d", (2, 2), {}, (*numbers((2, 1, 2)), np.tile([1, 6], (2, 1, 1)))),
    ("MaxUnpool3d", ((2, 1, 2),), {"padding": (1, 0, 0)},
     (*numbers((2, 3, 2, 1, 1)), np.tile([[[0]], [[3]]], (2, 3, 1, 1, 1)))),
    ("CosineSimilarity", (), {}, numbers((4, 3), (4, 3))),
    ("CosineSimilarity", (0, 0.1), {}, numbers((4, 3), (4, 1))),
    ("PairwiseDistance", (), {}, numbers((4, 3), (4, 3))),
    ("PairwiseDistance", (1.0,), {"eps": 0.1, "keepdim": True}, numbers((4, 3), (3,))),
]  # fmt: skip
