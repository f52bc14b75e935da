"""PyTorch's `torch.backends.mkl`: Intel's library is not used here."""

from __future__ import annotations

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    """Return False: products and transforms are not MKL's."""
    return False
