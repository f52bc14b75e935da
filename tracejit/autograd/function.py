"""Ops whose derivative the user writes; PyTorch's `torch.autograd.function`."""

from tracejit.eager.function import Function, FunctionCtx, once_differentiable

__all__ = ["Function", "FunctionCtx", "once_differentiable"]
