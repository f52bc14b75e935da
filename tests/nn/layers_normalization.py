"""Rows of the normalising layers."""

import numpy as np

RNG = np.random.default_rng(3)
X = RNG.normal(size=(5, 4))
IMAGES = {n: RNG.normal(size=(2, 3, *(4, 3, 2)[:n])) for n in (1, 2, 3)}

LAYERS = [
    *((f"{kind}{n}d", (3,), options, (IMAGES[n],))
      for n in (1, 2, 3) for kind in ("BatchNorm", "InstanceNorm")
      for options in ({"affine": True}, {"affine": False}, {"affine": True, "bias": False})),
    ("SyncBatchNorm", (3,), {"momentum": None}, (IMAGES[1],)),
    ("GroupNorm", (1, 3), {}, (IMAGES[2],)),
    ("GroupNorm", (3, 3), {"bias": False}, (IMAGES[2],)),
    ("GroupNorm", (2, 4), {"affine": False}, (X,)),
    ("RMSNorm", (4,), {}, (X,)),
    ("RMSNorm", ((5, 4), 0.1), {"elementwise_affine": False}, (X,)),
    ("LocalResponseNorm", (2,), {"alpha": 0.3}, (IMAGES[2],)),
]  # fmt: skip
