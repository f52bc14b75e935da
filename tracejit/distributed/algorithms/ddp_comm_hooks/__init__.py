"""Communication hooks of DistributedDataParallel; PyTorch's `ddp_comm_hooks`."""

from tracejit.distributed.algorithms.ddp_comm_hooks import default_hooks

__all__ = ["default_hooks"]
