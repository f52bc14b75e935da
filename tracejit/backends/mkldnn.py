"""PyTorch's `torch.backends.mkldnn`: scripts set its switches; oneDNN is not used here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

enabled = True
deterministic = False
allow_tf32 = None
VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2


def is_available() -> bool:
    """Return False: no layer is oneDNN's."""
    return False


def is_acl_available() -> bool:
    """Return False: no layer is that of Arm's library."""
    return False


def set_flags(_enabled: bool | None = None, _deterministic: bool | None = None,
              _allow_tf32: bool | None = None, _fp32_precision: str = "none") -> tuple:
    """Set the switches that are given; return the values that all had."""
    global enabled, deterministic, allow_tf32
    # In the order of the parameters, so that `flags` can set them again.
    before = enabled, deterministic, allow_tf32, "none"
    enabled = enabled if _enabled is None else _enabled
    deterministic = deterministic if _deterministic is None else _deterministic
    allow_tf32 = allow_tf32 if _allow_tf32 is None else _allow_tf32
    return before


@contextlib.contextmanager
def flags(enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True,
          fp32_precision: str = "none") -> Iterator[None]:
    """Context: the switches are set so inside; nothing depends on them."""
    before = set_flags(enabled, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)
