"""PyTorch's `torch._subclasses.fake_tensor`: tensors that only seem to hold values. There are
none."""

from typing import Any


def is_fake(x: Any) -> bool:
    """Return False: tensors hold values, or will when a program has run.

    >>> is_fake(None)
    False
    """
    return False
