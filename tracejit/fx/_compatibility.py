"""The mark that PyTorch puts on what stays as it is: `torch.fx._compatibility`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def compatibility(is_backward_compatible: bool) -> Callable[[Any], Any]:
    """Return a decorator that changes nothing.

    >>> compatibility(is_backward_compatible=True)(len) is len
    True
    """
    return lambda fn: fn
