"""Signals; PyTorch's `torch.signal`."""

from tracejit.signal import windows

__all__ = ["windows"]
