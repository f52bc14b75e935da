"""Optimizers of several processes; PyTorch's `torch.distributed.optim`."""

from tracejit.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from tracejit.distributed.optim.unavailable import DistributedOptimizer, as_functional_optim
from tracejit.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = [
    "DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer",
    "as_functional_optim",
]  # fmt: skip
