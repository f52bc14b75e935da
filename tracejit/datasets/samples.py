"""Samples of labelled data: pairs whose halves go through the user's transforms.

In: a subclass that gives the sample at an index. Out: that sample, transformed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.ops.types import float32
from tracejit.utils.data.dataset import Dataset

Transform = Callable[[Any], Any] | None


class Samples(Dataset):
    """Subclass it, with `__len__` and `pair`; both transforms are applied here."""

    def __init__(self, transform: Transform = None, target_transform: Transform = None) -> None:
        for name, given in (("transform", transform), ("target_transform", target_transform)):
            if given is not None and not callable(given):
                raise TypeError(f"{name} must be callable, got {type(given).__name__}")
        self.transform, self.target_transform = transform, target_transform

    def pair(self, index: int) -> tuple[Any, Any]:
        """Return the sample before the transforms. Raises IndexError where there is none."""
        raise NotImplementedError

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        x, target = self.pair(index)
        if self.transform is not None:
            x = self.transform(x)
        if self.target_transform is not None and target is not None:
            target = self.target_transform(target)
        return x, target


class GreyImages(Samples):
    """Images held in memory: `data` is uint8 (count, height, width), `targets` int64 (count).

    A sample is the image as float32 (1, height, width), 1 for `full`, and its class as an int.
    """

    data: Any
    targets: Any
    classes: list[str]
    full = 255

    def pair(self, index: int) -> tuple[Any, int]:
        return self.data[index].unsqueeze(0).to(float32) / self.full, int(self.targets[index])

    def __len__(self) -> int:
        return len(self.data)

    @property
    def class_to_idx(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.classes)}
