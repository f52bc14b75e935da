"""Answers about the processor and its library of products; PyTorch's `torch.backends.cpu`."""

from __future__ import annotations

import numpy as np


def is_available() -> bool:
    """Return True: tensors live in main memory."""
    return True


def blas() -> str:
    """Return the name that NumPy gives the library of its products."""
    built = np.show_config(mode="dicts") or {}
    return str(built.get("Build Dependencies", {}).get("blas", {}).get("name", "unknown"))


def get_cpu_capability() -> str:
    """Return "DEFAULT": no kernels for other processors are kept here; they are compiled for this
    one. Programs ask this to know which fast paths PyTorch has.

    >>> get_cpu_capability()
    'DEFAULT'
    """
    return "DEFAULT"
