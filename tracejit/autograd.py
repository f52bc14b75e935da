"""`tracejit.autograd`: gradients of recorded computations, under PyTorch's names.

In: tensors that require grad. Out: their gradients, custom Functions, checks. The tape and the
engine are in `eager/`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


class functional:
    """Jacobians and Hessians of functions of tensors."""

    @staticmethod
    def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False) -> Any:
        """d func(inputs) / d inputs, of shape output.shape + input.shape.

        For a tuple of inputs a tuple, one Jacobian for each; for a tuple of outputs a tuple of
        those.

        >>> import tracejit
        >>> x = tracejit.tensor([1.0, 2.0])
        >>> tracejit.autograd.functional.jacobian(lambda x: x * x, x)
        tensor([[2., 0.],
                [0., 4.]])
        """
        single = isinstance(inputs, TensorState)
        given = (inputs,) if single else tuple(inputs)
        with enable_grad():
            own = tuple(x if create_graph and x.requires_grad
                        else x.detach().requires_grad_() for x in given)
            found = func(*own)
            outputs = (found,) if isinstance(found, TensorState) else tuple(found)
            rows = tuple(_jacobians(y, own, create_graph) for y in outputs)
        rows = tuple(row[0] if single else row for row in rows)
        return rows[0] if isinstance(found, TensorState) else rows

    @staticmethod
    def hessian(func: Callable[..., Any], inputs: Any, create_graph: bool = False) -> Any:
        """Second derivatives of a scalar function, of shape input.shape + input.shape.

        >>> import tracejit
        >>> x = tracejit.tensor([1.0, 2.0])
        >>> tracejit.autograd.functional.hessian(lambda x: (x * x * x).sum(), x)
        tensor([[ 6.,  0.],
                [ 0., 12.]])
        """
        single = isinstance(inputs, TensorState)

        def first(*args: Any) -> Any:
            found = func(*args)
            if found.numel() != 1:
                raise RuntimeError("The function given to hessian should return a single element")
            grads = grad(found.reshape(()), args, create_graph=True, materialize_grads=True)
            return grads[0] if single else grads

        return functional.jacobian(first, inputs, create_graph)


def _jacobians(output: Any, inputs: tuple, create_graph: bool) -> tuple:
    """The Jacobian of one output for each input, row by row."""
    from tracejit.ops.joining import stack

    flat = output.reshape(-1)
    rows = []
    for k in range(output.numel()):
        if output.requires_grad:
            rows.append(grad(flat[k], inputs, retain_graph=True, create_graph=create_graph,
                             materialize_grads=True))
        else:
            rows.append(tuple(x.detach() * 0 for x in inputs))
    shape = tuple(output.shape)
    return tuple(stack([row[i] for row in rows]).reshape(shape + tuple(x.shape)) if rows
                 else x.new_zeros(shape + tuple(x.shape)) for i, x in enumerate(inputs))


__all__ = [
    "Function", "FunctionCtx", "GradcheckError", "Variable", "backward", "detect_anomaly",
    "enable_grad", "function", "functional", "grad", "gradcheck", "gradgradcheck",
    "inference_mode", "is_anomaly_enabled", "is_grad_enabled", "is_inference_mode_enabled",
    "no_grad", "once_differentiable", "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip
