"""The CPU as a device; PyTorch's `torch.cpu`."""

from __future__ import annotations

from typing import Any

from tracejit.cpu import amp

__all__ = ["amp", "current_device", "device_count", "is_available", "synchronize"]


def is_available() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """"cpu"."""
    return "cpu"


def synchronize(device: Any = None) -> None:
    """Does nothing: what was called is done."""
