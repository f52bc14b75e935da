"""PyTorch's `torch._subclasses.fake_tensor`: which tensors only seem to hold values. None does."""

from typing import Any


def is_fake(x: Any) -> bool:
    """False: tensors hold values, or will when a program has run.

    >>> is_fake(None)
    False
    """
    return False
