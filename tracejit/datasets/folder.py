"""Folders of images: one folder for each class, read by Pillow."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tracejit.core.eager.construction import from_numpy
from tracejit.core.ops.types import float32
from tracejit.datasets.samples import Samples, Transform

EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def load_image(path: str | os.PathLike, mode: str = "RGB") -> Any:
    """Read an image file as float32 (channels, height, width) between 0 and 1.

    mode   Pillow's name of the format it is converted to: "RGB", "L" for grey, "RGBA"

    Raises FileNotFoundError, ValueError for what Pillow cannot read to its end, ImportError where
    Pillow is missing.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("reading images needs Pillow, which is not installed "
                          f"({error}): pip install tracejit[images]") from error
    with open(path, "rb") as file:
        try:
            with Image.open(file) as image:
                # Pillow reads lazily: errors of the data come here, not from `open`.
                pixels = np.array(image.convert(mode))
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise ValueError(f"{path}: Pillow cannot read it: {error}") from error
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    return from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1))).to(float32) / 255


class ImageFolder(Samples):
    """Images in folders named after their classes: `root/cat/1.png`, `root/dog/x/2.png`.

    root              the folder of folders
    transform         called with each image
    target_transform  called with each class, an int
    loader            called with a path; default: `load_image`, float32 (3, height, width)
    is_valid_file     called with a path: True for a sample; default: by common endings
    allow_empty       True: a class may be without samples

    `classes` are the sorted names, `class_to_idx` their numbers. `samples` and `imgs` are the pairs
    of path and class, `targets` the classes alone. Raises FileNotFoundError for a root without
    folders and for classes without images.

    >>> ImageFolder("no/such/folder")
    Traceback (most recent call last):
    FileNotFoundError: no/such/folder is no folder
    """

    def __init__(self, root: str | os.PathLike, transform: Transform = None,
                 target_transform: Transform = None, loader: Callable[[str], Any] = load_image,
                 is_valid_file: Callable[[str], bool] | None = None,
                 allow_empty: bool = False) -> None:
        super().__init__(transform, target_transform)
        self.root, self.loader = Path(root), loader
        if not self.root.is_dir():
            raise FileNotFoundError(f"{self.root} is no folder")
        self.classes = sorted(entry.name for entry in self.root.iterdir() if entry.is_dir())
        if not self.classes:
            raise FileNotFoundError(f"Couldn't find any class folder in {self.root}.")
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        valid = is_valid_file or (lambda path: path.lower().endswith(EXTENSIONS))
        self.samples = [(path, number) for name, number in self.class_to_idx.items()
                        for path in _files(self.root / name) if valid(path)]
        self.imgs, self.targets = self.samples, [number for _, number in self.samples]
        empty = [name for name, number in self.class_to_idx.items() if number not in self.targets]
        if empty and not allow_empty:
            raise FileNotFoundError(f"Found no valid file for the classes {', '.join(empty)}.")

    def pair(self, index: int) -> tuple[Any, int]:
        path, target = self.samples[index]
        return self.loader(path), target

    def __len__(self) -> int:
        return len(self.samples)


def _files(folder: Path) -> list[str]:
    """Return all files below a folder, in torchvision's order: folder by folder, sorted in each."""
    walked = sorted(os.walk(folder, followlinks=True))
    return [os.path.join(place, name) for place, _, names in walked for name in sorted(names)]
