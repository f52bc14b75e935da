"""Ops whose derivative the user writes; PyTorch's `torch.autograd.function`."""

from tracejit.core.eager.function import Function, FunctionCtx, InplaceFunction, once_differentiable

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]
