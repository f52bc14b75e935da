"""What this installation can run on; PyTorch's `torch.backends`, as far as it applies here.

In: nothing. Out: `backends.cpu`, `backends.cuda`, `backends.cudnn`, each with the questions scripts
ask of it.
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np

from tracejit import cuda as _cuda
from tracejit.eager.recording import active


def _blas() -> str:
    """The library NumPy's products run on, as NumPy names it."""
    built = np.show_config(mode="dicts") or {}
    return str(built.get("Build Dependencies", {}).get("blas", {}).get("name", "unknown"))


cpu = SimpleNamespace(is_available=lambda: True, blas=_blas)


class _Cuda(SimpleNamespace):
    """`backends.cuda`; the switches of attention kernels are loaded when they are asked for."""

    def __getattr__(self, name: str) -> Any:
        if not name.endswith(("sdp", "sdp_enabled", "sdp_kernel")):
            raise AttributeError(f"module 'tracejit.backends.cuda' has no attribute {name!r}")
        return getattr(importlib.import_module("tracejit.nn.attention_backends"), name)


cuda = _Cuda(is_available=_cuda.is_available, is_built=lambda: True,
             matmul=SimpleNamespace(allow_tf32=False))
mps = SimpleNamespace(is_available=lambda: False, is_built=lambda: False)
# Scripts ask before they set its switches; there is no cuDNN here, so the answer is no.
cudnn = SimpleNamespace(
    is_available=lambda: False,
    version=lambda: None,
    enabled=False,
    benchmark=False,
    deterministic=False,
)


# Deterministic algorithms: all are, so what is asked for is only remembered.
class _Asked:
    mode, warn_only = False, False


def _asked() -> type[_Asked]:
    """What was asked for; a replay would neither see nor change it, so there is none."""
    if active.recorder is not None:
        active.recorder.need(None, "the switch for deterministic algorithms was read or set")
    return _Asked


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remember whether deterministic algorithms are asked for; all are.

    >>> import tracejit
    >>> tracejit.use_deterministic_algorithms(True)
    >>> tracejit.are_deterministic_algorithms_enabled()
    True
    >>> tracejit.use_deterministic_algorithms(False)
    """
    asked = _asked()
    asked.mode, asked.warn_only = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> Any:
    """Whether deterministic algorithms were asked for."""
    return _asked().mode


def is_deterministic_algorithms_warn_only_enabled() -> Any:
    """Whether a warning, no error, was asked for where there is none; there is one everywhere."""
    asked = _asked()
    return asked.mode and asked.warn_only
