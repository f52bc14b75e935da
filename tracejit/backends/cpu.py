"""PyTorch's `torch.backends.cpu`: whether there is a processor, and whose products it runs."""

from __future__ import annotations

import numpy as np


def is_available() -> bool:
    """Whether tensors can live in main memory: yes."""
    return True


def blas() -> str:
    """The library NumPy's products run on, as NumPy names it."""
    built = np.show_config(mode="dicts") or {}
    return str(built.get("Build Dependencies", {}).get("blas", {}).get("name", "unknown"))


def get_cpu_capability() -> str:
    """"DEFAULT": no kernels made for certain processors are kept here; they are compiled for this
    one. Programs ask for which ones PyTorch has faster paths.

    >>> get_cpu_capability()
    'DEFAULT'
    """
    return "DEFAULT"
