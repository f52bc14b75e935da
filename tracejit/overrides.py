"""What counts as a tensor; PyTorch's `torch.overrides`, of which functions ask only that here."""

from __future__ import annotations

from typing import Any

from tracejit.eager.tensor import Tensor

__all__ = ["is_tensor_like"]


def is_tensor_like(inp: Any) -> bool:
    """Whether an object is a tensor, or says what functions of tensors do with it.

    >>> import tracejit
    >>> is_tensor_like(tracejit.ones(1)), is_tensor_like([1.0])
    (True, False)
    """
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")
