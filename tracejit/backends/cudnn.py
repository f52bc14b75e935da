"""PyTorch's `torch.backends.cudnn`: scripts set its switches unasked; there is no cuDNN here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

# False, so that programs take the paths without cuDNN.
enabled = False
benchmark = False
deterministic = False
allow_tf32 = False


def is_available() -> bool:
    """Return False: there is no cuDNN."""
    return False


def version() -> None:
    """Return None: there is no cuDNN."""


@contextlib.contextmanager
def flags(enabled: bool = False, benchmark: bool = False, benchmark_limit: int = 10,
          deterministic: bool = False, allow_tf32: bool = True,
          fp32_precision: str = "none") -> Iterator[None]:
    """Context: nothing depends on the switches."""
    yield
