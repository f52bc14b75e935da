"""Parameters spread over processes; PyTorch's `torch.distributed.fsdp`: refused by name.

In: nothing. Out: classes that packages ask of modules. `ZeroRedundancyOptimizer` spreads the
optimizer's state and, with `shard_gradients=True`, the gradients.
"""

from tracejit.distributed.fsdp.api import *  # noqa: F403
from tracejit.distributed.fsdp.fully_sharded_data_parallel import (
    CPUOffloadPolicy,
    FSDPModule,
    FullyShardedDataParallel,
    MixedPrecisionPolicy,
    OffloadPolicy,
    OptimStateKeyType,
    fully_shard,
)

__all__ = [
    "CPUOffloadPolicy", "FSDPModule", "FullyShardedDataParallel", "MixedPrecisionPolicy",
    "OffloadPolicy", "OptimStateKeyType", "fully_shard",
]  # fmt: skip
