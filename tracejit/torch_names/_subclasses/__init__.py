"""PyTorch's `torch._subclasses`, as far as programs ask it anything."""
