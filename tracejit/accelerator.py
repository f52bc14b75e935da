"""Accelerator of this machine, if there is one; PyTorch's `torch.accelerator`.

In: nothing. Out: a CUDA device, or None.
"""

from __future__ import annotations

import importlib
from typing import Any

from tracejit import cuda
from tracejit.core.memory.devices import device as Device


def is_available() -> bool:
    """Return True if there is one that can be used."""
    return cuda.is_available()


def device_count() -> int:
    """Return the number of devices."""
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> Any:
    """Return the accelerator without a number; None where there is none.

    >>> import tracejit
    >>> tracejit.accelerator.current_accelerator() in (None, tracejit.device("cuda"))
    True
    """
    return Device("cuda") if is_available() else None


def synchronize(device: Any = None) -> None:
    """Wait until everything started there has finished."""
    cuda.synchronize(device)


def get_device_module(device: Any = None) -> Any:
    """Return the module for devices of a kind: `tracejit.cpu` or `tracejit.cuda`. None is the
    accelerator, else the CPU. RuntimeError for other kinds, and for what is no device.

    >>> import tracejit
    >>> tracejit.get_device_module("cpu").__name__
    'tracejit.cpu'
    """
    if device is None:
        place = current_accelerator() or Device("cpu")
    elif isinstance(device, (str, Device)):
        place = Device(device)
    else:
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    return importlib.import_module(f"tracejit.{place.type}")
