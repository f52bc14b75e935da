"""Modules on several devices or in several processes; PyTorch's `torch.nn.parallel`."""

from tracejit.nn.parallel.data_parallel import DataParallel, data_parallel
from tracejit.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
