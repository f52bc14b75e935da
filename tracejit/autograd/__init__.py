"""`tracejit.autograd`: gradients of recorded computations, under PyTorch's names.

In: tensors that require grad. Out: their gradients, custom Functions, checks. The tape and the
engine are in `eager/`.
"""

from __future__ import annotations

from typing import Any

from tracejit.autograd import functional
from tracejit.eager import function
from tracejit.eager.anomaly import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from tracejit.eager.backward import backward, grad
from tracejit.eager.function import Function, FunctionCtx, once_differentiable
from tracejit.eager.gradcheck import GradcheckError, gradcheck, gradgradcheck
from tracejit.eager.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from tracejit.eager.state import TensorState


class _VariableMeta(type):
    """Every tensor is a Variable."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TensorState)


class Variable(metaclass=_VariableMeta):
    """The relic `autograd.Variable(tensor)`: the tensor itself, as a leaf.

    >>> import tracejit
    >>> tracejit.autograd.Variable(tracejit.tensor([1.0]), requires_grad=True)
    tensor([1.], requires_grad=True)
    >>> isinstance(tracejit.ones(1), tracejit.autograd.Variable)
    True
    """

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        return data.detach().requires_grad_(requires_grad and not volatile)


__all__ = [
    "Function", "FunctionCtx", "GradcheckError", "Variable", "backward", "detect_anomaly",
    "enable_grad", "function", "functional", "grad", "gradcheck", "gradgradcheck",
    "inference_mode", "is_anomaly_enabled", "is_grad_enabled", "is_inference_mode_enabled",
    "no_grad", "once_differentiable", "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip
