"""Tensors spread over processes; PyTorch's `torch.distributed.tensor`: no tensor here is one.

In: nothing. Out: a class that programs may ask of tensors, and the placements that their plans
name.
"""

from tracejit.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from tracejit.distributed.tensor.spread import DTensor, distribute_module, distribute_tensor

__all__ = [
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module",
    "distribute_tensor",
]  # fmt: skip
