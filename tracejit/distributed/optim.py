"""Optimizers of several processes; PyTorch's `torch.distributed.optim`: refused when they are made.

In: nothing. Out: classes that programs may ask of an optimizer.
"""

from __future__ import annotations

from typing import Any

from tracejit.distributed import refuse
from tracejit.optim import Optimizer


class ZeroRedundancyOptimizer(Optimizer):
    """An optimizer whose state is spread over processes: NotImplementedError when it is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        refuse(type(self).__name__)


class DistributedOptimizer(ZeroRedundancyOptimizer):
    """An optimizer of parameters elsewhere: NotImplementedError when it is made."""


class PostLocalSGDOptimizer(ZeroRedundancyOptimizer):
    """An optimizer that averages over processes: NotImplementedError when it is made."""
