"""The accelerator there is, if any; PyTorch's `torch.accelerator`.

In: nothing. Out: a CUDA device, or None.
"""

from __future__ import annotations

from typing import Any

from tracejit import cuda
from tracejit.memory.devices import device


def is_available() -> bool:
    """Whether there is one that can be used."""
    return cuda.is_available()


def device_count() -> int:
    """How many there are."""
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> Any:
    """Its device without a number; None where there is none.

    >>> import tracejit
    >>> tracejit.accelerator.current_accelerator() in (None, tracejit.device("cuda"))
    True
    """
    return device("cuda") if is_available() else None


def synchronize(device: Any = None) -> None:
    """Wait until everything started there has finished."""
    cuda.synchronize(device)
