"""Whether gradients are recorded; PyTorch's `torch.autograd.grad_mode`, which some import from."""

from tracejit.core.eager.modes import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled",
           "set_multithreading_enabled"]
