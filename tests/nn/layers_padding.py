"""Rows of the padding layers."""

import numpy as np

RNG = np.random.default_rng(6)
SHAPES = {1: (2, 3, 4), 2: (2, 3, 4, 5), 3: (2, 3, 4, 3, 5)}


def rows(kind, *further):
    for n, shape in SHAPES.items():
        uneven = (1, 2, 0, 1, 2, -1)[:2 * n]
        yield f"{kind}Pad{n}d", (1, *further), {}, (RNG.normal(size=shape),)
        yield f"{kind}Pad{n}d", (uneven, *further), {}, (RNG.normal(size=shape[1:]),)


LAYERS = [
    *rows("Zero"), *rows("Constant", 2.5), *rows("Reflection"), *rows("Replication"),
    *rows("Circular"),
]  # fmt: skip
