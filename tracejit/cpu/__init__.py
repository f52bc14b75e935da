"""CPU as a device; PyTorch's `torch.cpu`."""

from __future__ import annotations

from typing import Any

from tracejit.cpu import amp

__all__ = ["amp", "current_device", "device_count", "is_available", "synchronize"]


def is_available() -> bool:
    """Return True."""
    return True


def device_count() -> int:
    """Return 1."""
    return 1


def current_device() -> str:
    """Return "cpu"."""
    # A text, as in PyTorch: CUDA's function returns a number.
    return "cpu"


def synchronize(device: Any = None) -> None:
    """Do nothing: what was called is done."""
