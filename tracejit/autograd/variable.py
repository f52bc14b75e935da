"""Variables, as tensors were called; PyTorch's `torch.autograd.variable`."""

from __future__ import annotations

from typing import Any

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
