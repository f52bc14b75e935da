"""Variables, as tensors were called; PyTorch's `torch.autograd.variable`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.eager.recording import active
from tracejit.core.eager.state import TensorState


class _Engine:
    """Part of PyTorch's engine that programs call."""

    @staticmethod
    def queue_callback(callback: Callable[[], Any]) -> None:
        """Call `callback` when the backward that runs now is over. RuntimeError where none runs."""
        if active.task is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        if active.tracer is not None:
            active.tracer.break_graph(None, "the function queues a callback for the end of "
                                            "backward()",
                                      "call it after backward()")
        active.task.callbacks.append(callback)


class _VariableMeta(type):
    """Every tensor is a Variable."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TensorState)


class Variable(metaclass=_VariableMeta):
    """Relic `autograd.Variable(tensor)`: returns the tensor itself, as a leaf.

    >>> import tracejit
    >>> tracejit.autograd.Variable(tracejit.tensor([1.0]), requires_grad=True)
    tensor([1.], requires_grad=True)
    >>> isinstance(tracejit.ones(1), tracejit.autograd.Variable)
    True
    """

    _execution_engine = _Engine()

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        return data.detach().requires_grad_(requires_grad and not volatile)
