"""`tracejit.autograd`: gradients of recorded computations, under PyTorch's names.

In: tensors that require grad. Out: their gradients, custom Functions, checks. The tape and the
engine are in `eager/`.
"""

from __future__ import annotations

from tracejit.autograd import (
    anomaly_mode,
    batched,  # noqa: F401
    forward_ad,
    function,
    functional,
    grad_mode,
    graph,
    profiler,
    variable,
)
from tracejit.autograd.function import Function, FunctionCtx, once_differentiable
from tracejit.autograd.gradcheck import gradcheck
from tracejit.autograd.variable import Variable
from tracejit.core.eager.anomaly import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from tracejit.core.eager.backward import backward, grad
from tracejit.core.eager.gradcheck import GradcheckError, gradgradcheck
from tracejit.core.eager.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)

__all__ = [
    "Function", "FunctionCtx", "GradcheckError", "Variable", "anomaly_mode", "backward",
    "detect_anomaly", "enable_grad", "forward_ad", "function", "functional", "grad", "grad_mode",
    "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_anomaly_enabled",
    "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "once_differentiable", "profiler",
    "set_detect_anomaly", "set_grad_enabled", "set_multithreading_enabled", "variable",
]  # fmt: skip
