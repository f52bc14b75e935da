"""Passes over graphs of calls; PyTorch's `torch.fx.passes`."""
