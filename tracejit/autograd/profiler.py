"""PyTorch's `torch.autograd.profiler`, the older place of `torch.profiler`."""

from tracejit.profiler import profile, record_function

__all__ = ["profile", "record_function"]
