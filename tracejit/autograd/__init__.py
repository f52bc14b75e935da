"""`tracejit.autograd`: gradients of recorded computations, under PyTorch's names.

In: tensors that require grad. Out: their gradients, custom Functions, checks. The tape and the
engine are in `eager/`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tracejit.autograd import (
    anomaly_mode,
    batched,  # noqa: F401
    function,
    grad_mode,
    variable,
)
from tracejit.autograd.function import Function, FunctionCtx, once_differentiable
from tracejit.autograd.gradcheck import gradcheck
from tracejit.autograd.variable import Variable
from tracejit.core.eager.anomaly import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from tracejit.core.eager.backward import backward, grad
from tracejit.core.eager.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)

if TYPE_CHECKING:
    from tracejit.autograd import forward_ad, functional, graph, profiler
    from tracejit.core.eager.gradcheck import GradcheckError, gradgradcheck

__all__ = [
    "Function", "FunctionCtx", "GradcheckError", "Variable", "anomaly_mode", "backward",
    "detect_anomaly", "enable_grad", "forward_ad", "function", "functional", "grad", "grad_mode",
    "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_anomaly_enabled",
    "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "once_differentiable", "profiler",
    "set_detect_anomaly", "set_grad_enabled", "set_multithreading_enabled", "variable",
]  # fmt: skip

_CHECKS = frozenset({"GradcheckError", "gradgradcheck"})
_SUBMODULES = frozenset({"forward_ad", "functional", "graph", "profiler"})


def __getattr__(name: str) -> Any:
    """Return a name on first use: importing these files with the package would take long."""
    if name in _SUBMODULES:
        return importlib.import_module(f"tracejit.autograd.{name}")
    if name in _CHECKS:
        return getattr(importlib.import_module("tracejit.core.eager.gradcheck"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_CHECKS, *_SUBMODULES})
