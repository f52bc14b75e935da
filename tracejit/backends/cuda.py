"""PyTorch's `torch.backends.cuda`; the switches of attention kernels are loaded when asked for."""

from __future__ import annotations

import importlib
import importlib.util
from types import SimpleNamespace
from typing import Any

from tracejit.cuda import is_available

__all__ = ["is_available", "is_built", "matmul"]

# Scripts set these switches; nothing reads them.
matmul = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=False,
                         allow_bf16_reduced_precision_reduction=False)


def is_built() -> bool:
    """Return True if this installation could use a CUDA device: with CuPy.

    >>> is_built() or not is_available()
    True
    """
    return importlib.util.find_spec("cupy") is not None


def __getattr__(name: str) -> Any:
    if not name.endswith(("sdp", "sdp_enabled", "sdp_kernel")):
        raise AttributeError(f"module 'tracejit.backends.cuda' has no attribute {name!r}")
    return getattr(importlib.import_module("tracejit.nn.attention_backends"), name)
