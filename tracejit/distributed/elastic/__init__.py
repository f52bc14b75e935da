"""PyTorch's `torch.distributed.elastic`: names for processes that a launcher started."""
