"""Optimizers of several processes; PyTorch's `torch.distributed.optim`."""

from tracejit.distributed.optim.unavailable import DistributedOptimizer, PostLocalSGDOptimizer
from tracejit.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]
