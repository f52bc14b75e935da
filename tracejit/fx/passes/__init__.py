"""Passes over graphs of calls; PyTorch's `torch.fx.passes`."""

from tracejit.fx.passes import shape_prop

__all__ = ["shape_prop"]
