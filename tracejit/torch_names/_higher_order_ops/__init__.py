"""PyTorch's `torch._higher_order_ops`: ops that take functions, as far as models name them."""
