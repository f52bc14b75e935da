"""scikit-learn's handwritten digits: 1797 images that come with that package."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.core.eager.construction import from_numpy
from tracejit.datasets.samples import GreyImages, Transform


class Digits(GreyImages):
    """Dataset of 1797 digits of 8 by 8 pixels: four in five to train on, the others to test with.

    train             True for the part to train on
    transform         called with each image
    target_transform  called with each class, an int

    Images are float32 (1, 8, 8) between 0 and 1. The split is the same everywhere. `data` is uint8
    (count, 8, 8) with values up to 16, `targets` int64 (count). Raises ImportError where
    scikit-learn is missing.

    >>> digits = Digits(train=False)
    >>> len(digits), digits[0][0].shape
    (360, tracejit.Size([1, 8, 8]))
    """

    classes = [str(digit) for digit in range(10)]
    full = 16

    def __init__(self, train: bool = True, transform: Transform = None,
                 target_transform: Transform = None) -> None:
        super().__init__(transform, target_transform)
        self.train = train
        images, targets = _all()
        # A generator of its own, with a fixed seed: the split is the same in each process.
        order = np.random.default_rng(0).permutation(len(images))
        cut = len(order) * 4 // 5
        chosen = order[:cut] if train else order[cut:]
        self.data = from_numpy(images[chosen].astype(np.uint8))
        self.targets = from_numpy(targets[chosen].astype(np.int64))


def _all() -> tuple[Any, Any]:
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError("tracejit.datasets.Digits needs scikit-learn, which is not installed "
                          f"({error}): pip install tracejit[examples]") from error
    bunch = load_digits()
    return bunch.images, bunch.target
