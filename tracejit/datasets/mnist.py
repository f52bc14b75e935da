"""MNIST and data in its four files, read from a folder under torchvision's argument names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tracejit.core.ops.types import int64, uint8
from tracejit.datasets.idx import read_idx
from tracejit.datasets.samples import GreyImages, Transform


class MNIST(GreyImages):
    """Handwritten digits: 60,000 images of 28 by 28 pixels to train on, 10,000 to test with.

    root              folder with the files, as `root/MNIST/raw`, `root/MNIST` or `root` itself:
                      `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, and `t10k-...` for the
                      test; each may end in `.gz`
    train             True for the part to train on
    transform         called with each image, float32 (1, 28, 28) between 0 and 1
    target_transform  called with each class, an int
    download          True asks for files that are there: nothing is downloaded

    `data` is uint8 (count, 28, 28), `targets` int64 (count), `classes` the names. Differs from
    torchvision, whose images are Pillow's before a transform: no `ToTensor` is needed. Raises
    RuntimeError, naming the files, where they are missing, ValueError for damaged ones.

    >>> MNIST("no/such/folder", download=True)
    Traceback (most recent call last):
    RuntimeError: MNIST downloads nothing: put train-images-idx3-ubyte and ...
    """

    classes = ["0 - zero", "1 - one", "2 - two", "3 - three", "4 - four", "5 - five", "6 - six",
               "7 - seven", "8 - eight", "9 - nine"]  # fmt: skip

    def __init__(self, root: str | os.PathLike, train: bool = True, transform: Transform = None,
                 target_transform: Transform = None, download: bool = False) -> None:
        super().__init__(transform, target_transform)
        self.root, self.train = Path(root), train
        part = "train" if train else "t10k"
        names = [f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"]
        images, labels = self._found(names, download)
        self.data, self.targets = self._checked(images, 3), self._checked(labels, 1).to(int64)
        if len(self.data) != len(self.targets):
            raise ValueError(f"{labels}: {len(self.targets)} labels for the {len(self.data)} "
                             f"images of {images}")
        # A wrong label would show only in training, as an index out of range.
        largest = int(self.targets.max()) if len(self.targets) else 0
        if largest >= len(self.classes):
            raise ValueError(f"{labels}: label {largest}, expected 0 to {len(self.classes) - 1}")

    def _found(self, names: list[str], download: bool) -> list[Path]:
        own = self.root / type(self).__name__
        for folder in (own / "raw", own, self.root):
            there = [path for name in names for path in (folder / name, folder / f"{name}.gz")
                     if path.is_file()]
            if len({path.name.removesuffix(".gz") for path in there}) == len(names):
                return [next(p for p in there if p.name.startswith(name)) for name in names]
        reason = "downloads nothing" if download else "not found"
        raise RuntimeError(f"{type(self).__name__} {reason}: put {' and '.join(names)}, or the "
                           f"same with .gz, into {own / 'raw'}, {own} or {self.root}")

    @staticmethod
    def _checked(path: Path, dimensions: int) -> Any:
        found = read_idx(path)
        if found.dim() != dimensions or found.dtype is not uint8:
            raise ValueError(f"{path}: expected uint8 in {dimensions} dimensions, "
                             f"got {found.dtype!r} in {found.dim()}")
        return found


class FashionMNIST(MNIST):
    """Pictures of clothes in MNIST's format; everything else as `MNIST`.

    >>> FashionMNIST.classes[9]
    'Ankle boot'
    """

    classes = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker",
               "Bag", "Ankle boot"]  # fmt: skip


class KMNIST(MNIST):
    """Cursive Japanese characters in MNIST's format; everything else as `MNIST`.

    >>> KMNIST.classes[:3]
    ['o', 'ki', 'su']
    """

    classes = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]
