"""An older place of `fully_shard`; PyTorch's `torch.distributed._composable`."""
