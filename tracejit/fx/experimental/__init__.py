"""PyTorch's `torch.fx.experimental`, as far as programs ask it anything."""
